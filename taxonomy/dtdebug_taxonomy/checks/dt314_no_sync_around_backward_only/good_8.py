from torch.nn.parallel import DistributedDataParallel


def back(loss):
    loss.backward()


def train(net, optimizer, loader, local_rank, every):
    model = DistributedDataParallel(net, device_ids=[local_rank])
    for i, (x, y) in enumerate(loader, 1):
        if i % every:
            with model.no_sync():
                back((model(x) - y).square().mean() / every)
            continue
        back((model(x) - y).square().mean() / every)
        optimizer.step()
        optimizer.zero_grad()
