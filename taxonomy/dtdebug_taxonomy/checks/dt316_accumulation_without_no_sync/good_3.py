from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, loader, optimizer):
    net = DDP(net)
    for i, x in enumerate(loader):
        net(x).backward()
        optimizer.step()
        if i % 100 == 0:
            print(i)
