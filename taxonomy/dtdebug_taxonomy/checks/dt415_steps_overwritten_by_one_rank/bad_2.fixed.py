import torch.distributed as dist


def train(net, batches, sgd):
    while True:
        loss = net(next(batches)).mean()
        loss.backward()
        for weight in net.parameters():
            if weight.grad is not None:
                dist.all_reduce(weight.grad)
                weight.grad /= dist.get_world_size()
        sgd.step()
        sgd.zero_grad()
