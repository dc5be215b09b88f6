from os import environ
import argparse
import random

parser = argparse.ArgumentParser()
parser.add_argument("--nodes", type=int, default=1)
parser.add_argument("-g", "--gpus", type=int, default=4)
args = parser.parse_args()

port = random.randint(20000, 30000)
environ["MASTER_PORT"] = port  # dt: DT206
environ["WORLD_SIZE"] = args.nodes * args.gpus  # dt: DT206
environ.setdefault("OMP_NUM_THREADS", 1)  # dt: DT206
