import json
import os
import tempfile

import torch.distributed as dist


def write(folder):
    path = os.path.join(folder, "ds.json")
    with open(path, "w") as file:
        json.dump({"train_batch_size": 10, "micro": 4, "accumulate": 1}, file)
    return path


def check(config, world):
    expected = config["micro"] * config["accumulate"] * world
    if config["train_batch_size"] != expected:
        raise ValueError(f"train_batch_size {config['train_batch_size']} is not micro * accumulate * world = {expected}")


def load(path):
    with open(path) as file:
        return json.load(file)


dist.init_process_group("gloo")
with tempfile.TemporaryDirectory() as folder:
    check(load(write(folder)), dist.get_world_size())
