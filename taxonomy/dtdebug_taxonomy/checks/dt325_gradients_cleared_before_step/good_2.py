def train(model, loader, optimizer):
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
