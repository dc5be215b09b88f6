import os
import tempfile

import torch
from ray import train
from ray.train import Checkpoint


def save(model, metrics):
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.module.state_dict(), os.path.join(folder, "model.pt"))
        train.report(metrics, checkpoint=Checkpoint.from_directory(folder))


def train_func(config):
    model = train.torch.prepare_model(config["model"])
    rank = train.get_context().get_world_rank()
    for epoch in range(10):
        loss = config["epoch"](model)
        if rank == 0:
            save(model, {"loss": loss})  # dt: DT120
