def train(model, loader, optimizer, every, last):
    for i, batch in enumerate(loader):
        if i % every and not last(i):
            with model.no_sync():
                model(batch).backward()
            continue
        model(batch).backward()
        if (i + 1) % every == 0 and not last(i):
            optimizer.step()


def micro(model, batches, optimizer):
    for batch in batches[:-1]:
        with model.no_sync():
            model(batch).backward()
    model(batches[-1]).backward()
    optimizer.step()
