import ray.train
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model

from mine import Net, epoch_of


def train_func(config):
    model = prepare_model(Net())
    for epoch in range(config["epochs"]):
        loss = epoch_of(model)
        if ray.train.get_context().get_world_rank() == 0:
            ray.train.report({"loss": loss, "epoch": epoch})  # dt: DT120


TorchTrainer(train_func, train_loop_config={"epochs": 3}, scaling_config=ScalingConfig(num_workers=4)).fit()
