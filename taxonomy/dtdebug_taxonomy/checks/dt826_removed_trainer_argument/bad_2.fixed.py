import argparse

from lightning.pytorch import Trainer as LightningTrainer


def main(args):
    trainer = LightningTrainer(
        accelerator="gpu" if args.gpus else "cpu", devices=args.gpus or 1,  # dt: DT826
        use_distributed_sampler=False,  # dt: DT826
        resume_from_checkpoint=args.checkpoint,  # dt: DT826
        precision=16,
    )
    trainer.fit(None)


if __name__ == "__main__":
    main(argparse.Namespace(gpus=1, checkpoint=None))
