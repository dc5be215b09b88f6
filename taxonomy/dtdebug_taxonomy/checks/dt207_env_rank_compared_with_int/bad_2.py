from os import environ as env

import torch.distributed as dist


def save(model, path):
    rank = env.get("RANK")
    local_rank = env["LOCAL_RANK"]
    if rank != 0:  # dt: DT207
        return
    print("saves on", local_rank if local_rank in (0, 1) else "?")  # dt: DT207


def main():
    dist.init_process_group("nccl")
    save(None, "m.pt")
