def train(model, loader, optimizer, number):
    for n, x in enumerate(loader):
        (model(x).mean() / number).backward()
        if (n + 1) % number == 0:
            optimizer.step()
            optimizer.zero_grad()
