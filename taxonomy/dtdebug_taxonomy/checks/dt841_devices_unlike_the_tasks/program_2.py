import argparse

from pytorch_lightning import Trainer

parser = argparse.ArgumentParser()
parser.add_argument("--gpus", type=int, default=4)
parser.add_argument("--nodes", type=int, default=1)
args = parser.parse_args()
trainer = Trainer(accelerator="gpu", devices=args.gpus, num_nodes=args.nodes, strategy="ddp")
trainer.fit(Model(), Data())
