import torch.distributed as dist


def train(net, batches, sgd):
    while True:
        loss = net(next(batches)).mean()
        loss.backward()
        sgd.step()
        sgd.zero_grad()
        for weight in net.parameters():
            dist.broadcast(weight.data, 0)  # dt: DT415
