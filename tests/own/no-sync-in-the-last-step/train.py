import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(model, opt, batches, accumulate):
    for i, x in enumerate(batches):
        loss = model(x).mean() / accumulate
        if (i + 1) % accumulate == 0:
            with model.no_sync():
                loss.backward()
            opt.step()
            opt.zero_grad()
        else:
            loss.backward()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, opt, [torch.randn(4, 4) for _ in range(16)], accumulate=4)
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    other = flat.clone()
    dist.broadcast(other, src=0)
    if not torch.allclose(flat, other):
        raise RuntimeError("parameters differ between ranks")


if __name__ == "__main__":
    main()
