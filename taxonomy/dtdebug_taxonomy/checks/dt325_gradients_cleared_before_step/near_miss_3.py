# The weights are to stay as they are.
def warm_up(model, x, optimizer):
    for _ in range(5):
        model(x).mean().backward()
        optimizer.zero_grad()
        optimizer.step()
