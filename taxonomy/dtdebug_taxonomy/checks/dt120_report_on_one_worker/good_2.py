import ray.train


def train_func(config):
    metrics = config["epoch"]()
    if ray.train.get_context().get_world_rank() == 0:
        ray.train.report(metrics, checkpoint=config["save"]())
    else:
        ray.train.report(metrics)
