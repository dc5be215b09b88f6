def epoch(model, optimizer, loader, budget):
    tokens = 0
    for batch in loader:
        tokens += batch["mask"].sum().item()
        if tokens < budget:  # dt: DT326
            with model.no_sync():
                model(batch).backward()
        else:
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            tokens = 0
