import os

import torch.distributed as dist


def first():
    dist.init_process_group("gloo")
    dist.destroy_process_group()
    os.environ["MASTER_PORT"] = "29501"
    dist.init_process_group("gloo")


def second():
    os.environ["MASTER_PORT"] = "29502"
