def epoch(model, optimizer, loader, every):
    micro = 0
    for batch in loader:
        micro += 1
        if micro < every:
            with model.no_sync():
                model(batch).backward()
        else:
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            micro = 0
