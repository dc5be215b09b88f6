from torch.nn.parallel import DistributedDataParallel


def train(model, distributed):
    if distributed:
        model = DistributedDataParallel(model)
    model.prune(0.5)


if __name__ == "__main__":
    train(object(), distributed=False)
