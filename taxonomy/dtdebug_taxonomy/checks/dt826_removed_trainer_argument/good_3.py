import lightning as L


def main(args):
    return L.Trainer(
        accelerator="auto",
        devices=args.gpus,
        use_distributed_sampler=False,
        enable_checkpointing=True,
        barebones=False,
    )
