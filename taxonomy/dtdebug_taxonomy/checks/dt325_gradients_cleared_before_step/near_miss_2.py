def put_back(model, x, optimizer, project):
    model(x).mean().backward()
    kept = [p.grad.clone() for p in model.parameters()]
    optimizer.zero_grad()
    for p, grad in zip(model.parameters(), kept):
        p.grad = project(grad)
    optimizer.step()
