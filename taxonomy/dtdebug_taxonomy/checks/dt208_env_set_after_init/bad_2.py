import os
from torch import distributed as dist


def setup():
    dist.init_process_group(backend="nccl", init_method="env://")


def main(args):
    setup()
    os.environ.setdefault("MASTER_ADDR", args.host)  # dt: DT208
    os.environ["WORLD_SIZE"] = str(args.nodes * 8)  # dt: DT208
