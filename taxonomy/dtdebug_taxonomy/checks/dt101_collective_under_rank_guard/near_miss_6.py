import torch
import torch.distributed as dist


def fit(model, optimizer, loader):
    rank = dist.get_rank()
    signal = torch.zeros(1)

    def closure():
        if rank == 0:
            signal.fill_(1)
            dist.broadcast(signal, src=0)
        loss = sum(model(batch).sum() for batch in loader)
        loss.backward()
        return loss

    if rank == 0:
        optimizer.step(closure)
        signal.fill_(0)
        dist.broadcast(signal, src=0)
    else:
        while True:
            dist.broadcast(signal, src=0)
            if not signal.item():
                break
            closure()
