def train(model, loader, optimizer, every):
    for i, batch in enumerate(loader):
        if i % every != every - 1:
            with model.no_sync():
                model(batch).backward()
        else:
            model(batch).backward()
        if i % every == every - 1:
            optimizer.step()
        if i % every != 0:
            print(i)
