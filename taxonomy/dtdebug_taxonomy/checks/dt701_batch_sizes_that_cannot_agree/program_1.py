import argparse

import deepspeed

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--local_rank", type=int, default=-1)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()

model = build()
engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
