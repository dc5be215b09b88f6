from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, loader, optimizer, steps):
    net = DDP(net)
    for x in loader:
        for micro in range(steps):
            net.require_backward_grad_sync = micro == steps - 1
            net(x).backward()
        if steps % 2 == 0:
            optimizer.step()
