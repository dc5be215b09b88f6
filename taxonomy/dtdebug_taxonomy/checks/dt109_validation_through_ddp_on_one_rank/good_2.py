from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model, loader, rank):
    for x in loader:
        y = model(x)
        if rank == 0:
            print(y)


def main(rank):
    model = DDP(net)
    evaluate(model, loader, rank)
    if rank == 0:
        evaluate(model.module, loader, rank)
