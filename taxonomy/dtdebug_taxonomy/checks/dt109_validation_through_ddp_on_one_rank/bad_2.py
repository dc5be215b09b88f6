import torch
from torch.nn.parallel import DistributedDataParallel


def evaluate(network, loader):
    network.eval()
    return sum((network(x).argmax(-1) == y).float().mean() for x, y in loader)


def main(rank, args):
    model = build(args).to(rank)
    model = DistributedDataParallel(model, device_ids=[rank])
    for epoch in range(args.epochs):
        train(model)
        if rank == 0 and epoch % 5 == 0:
            print(evaluate(model, args.loader))  # dt: DT109


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, args=(parse(),), nprocs=2)
