import ray.train
from ray.train import Checkpoint


def train_func(config):
    for epoch in range(config["epochs"]):
        metrics = config["epoch"]()
        checkpoint = None
        if ray.train.get_context().get_world_rank() == 0:
            checkpoint = Checkpoint.from_directory(config["save"](epoch))
        ray.train.report(metrics, checkpoint=checkpoint)
