from torch.nn.parallel import DistributedDataParallel as DDP


def train(model, optimizer, batches, every):
    model = DDP(model)
    for n, batch in enumerate(batches):
        model(batch).mean().backward()
        if n % every == 0:
            optimizer.step()
        model.require_backward_grad_sync = (n + 1) % every == 0  # of the next micro-step


def train_counted(model, optimizer, batches, every):
    model = DDP(model)
    for n, batch in enumerate(batches):
        model.require_backward_grad_sync = (n + 1) % every == 0
        model(batch).mean().backward()
        if (n + 1) % every == 0:
            optimizer.step()


def train_in_turns(model, optimizer, batches, every):
    model = DDP(model)
    for n, batch in enumerate(batches):
        if n % every == 0:
            model.require_backward_grad_sync = False
        if (n + 1) % every == 0:
            model.require_backward_grad_sync = True
        model(batch).mean().backward()
        if (n + 1) % every == 0:
            optimizer.step()


def train_switched(model, optimizer, batches, every):
    model = DDP(model)
    for n, batch in enumerate(batches):
        model.require_backward_grad_sync = False
        if (n + 1) % every == 0:
            model.require_backward_grad_sync = True
        model(batch).mean().backward()
        if (n + 1) % every == 0:
            optimizer.step()
