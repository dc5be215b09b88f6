from ray.train import get_context, report


def train_func(config):
    for epoch in range(config["epochs"]):
        metrics = config["epoch"]()
        if get_context().get_world_rank() != 0:
            continue
        report(metrics)  # dt: DT120
