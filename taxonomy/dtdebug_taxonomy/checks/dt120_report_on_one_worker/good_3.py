import ray.train


def train_func(config):
    for epoch in range(config["epochs"]):
        metrics = config["epoch"]()
        if (epoch + 1) % 5 == 0:
            ray.train.report(metrics)
