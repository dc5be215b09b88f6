from contextlib import nullcontext


def train(model, loader, optimizer, every):
    for i, batch in enumerate(loader, 1):
        with nullcontext() if i % every == 0 or i == len(loader) else model.no_sync():
            model(batch).backward()
        if i % every == 0 or i == len(loader):
            optimizer.step()
