from functools import partial

from torch.nn.parallel import DistributedDataParallel


def run_backward(loss, optimizer):
    loss.backward()


def train(net, loader, optimizer, gradient_accumulate_every):
    net = DistributedDataParallel(net)
    backwards = partial(run_backward, optimizer=optimizer)
    optimizer.zero_grad()
    for _ in range(gradient_accumulate_every):
        loss = net(next(loader)) / gradient_accumulate_every
        backwards(loss)  # dt: DT316
    optimizer.step()
