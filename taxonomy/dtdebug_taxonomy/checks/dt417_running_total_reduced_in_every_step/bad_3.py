import torch
import torch.distributed as dist


def count(loader):
    seen = torch.zeros(1)
    for step, batch in enumerate(loader):
        seen += len(batch)
        if step % 10 == 0:
            dist.reduce(seen, dst=0)  # dt: DT417
            if dist.get_rank() == 0:
                print(step, seen.item())
