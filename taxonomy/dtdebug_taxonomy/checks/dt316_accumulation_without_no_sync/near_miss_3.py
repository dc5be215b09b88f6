from torch.nn.parallel import DistributedDataParallel


def train(net, loader, optimizer, micro_batches, epochs):
    net = DistributedDataParallel(net)
    for _ in range(epochs):
        loss = net(next(loader))
        loss.backward()
        optimizer.step()
    for micro in range(micro_batches):
        net(next(loader)).mean().backward()
        optimizer.step()
