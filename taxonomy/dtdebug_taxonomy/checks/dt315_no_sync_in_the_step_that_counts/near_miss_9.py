from contextlib import nullcontext

from torch.nn.parallel import DistributedDataParallel


def train(model, batches, optimizer, multi_gpu):
    model = DistributedDataParallel(model)
    for batch in batches:
        parts = batch.chunk(4)
        for number, part in enumerate(parts):
            skip = multi_gpu and number < len(parts) - 1
            sync = model.no_sync() if skip else nullcontext()
            with sync:
                model(part).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
