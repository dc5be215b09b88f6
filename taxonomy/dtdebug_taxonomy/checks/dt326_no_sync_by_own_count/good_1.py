import torch
import torch.distributed as dist


def epoch(model, optimizer, loader, budget):
    tokens = 0
    for batch in loader:
        count = torch.tensor(len(batch))
        dist.all_reduce(count)
        tokens += count.item()
        if tokens < budget:
            with model.no_sync():
                model(batch).backward()
        else:
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            tokens = 0
