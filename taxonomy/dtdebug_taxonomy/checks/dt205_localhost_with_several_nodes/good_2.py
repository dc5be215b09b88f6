import os


def setup(args):
    args.world_size = args.nodes * args.gpus
    os.environ["MASTER_ADDR"] = args.master_addr
    if args.nodes == 1:
        os.environ["MASTER_ADDR"] = "localhost"
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
