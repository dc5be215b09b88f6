import json

import torch.distributed as dist


def main(path):
    if dist.get_rank() == 0:
        with open(path) as file:
            config = [json.load(file)]
    else:
        config = [None]
    dist.broadcast_object_list(config)
    return config[0]
