import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--port", default="29500")
parser.add_argument("--gpu", type=str)
parser.add_argument("--rank")
args = parser.parse_args()
os.environ["MASTER_PORT"] = args.port
os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
os.environ["RANK"] = args.rank
os.environ["MASTER_ADDR"] = os.environ.get("HOST") or "localhost"
