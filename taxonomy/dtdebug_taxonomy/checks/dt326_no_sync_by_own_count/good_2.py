def epoch(model, optimizer, loader, every):
    for i, batch in enumerate(loader):
        if (i + 1) % every and i + 1 < len(loader):
            with model.no_sync():
                model(batch).backward()
        else:
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
