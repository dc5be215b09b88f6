import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
print(f"LOCAL_RANK {os.environ['LOCAL_RANK']} has args.local_rank {args.local_rank}")
