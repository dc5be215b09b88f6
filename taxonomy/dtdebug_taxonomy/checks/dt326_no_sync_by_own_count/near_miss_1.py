def epoch(model, optimizer, loader, every):
    seen = 0
    for i, batch in enumerate(loader):
        seen += len(batch)
        if i % every:
            with model.no_sync():
                model(batch).backward()
        else:
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
    print(f"{seen} samples")
