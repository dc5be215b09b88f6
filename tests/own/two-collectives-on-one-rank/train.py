import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def summarize(epoch, correct, seen):
    rank = dist.get_rank()
    if rank == 0 and epoch % 2 == 1:
        dist.all_reduce(correct)
        dist.all_reduce(seen)
        acc = (correct / seen).item()
        print(f"epoch {epoch} acc {acc:.3f}")


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(4, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        correct, seen = torch.zeros(1), torch.zeros(1)
        for _ in range(4):
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            out = model(x)
            opt.zero_grad()
            nn.functional.cross_entropy(out, y).backward()
            opt.step()
            correct += (out.argmax(1) == y).sum()
            seen += len(y)
        summarize(epoch, correct, seen)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
