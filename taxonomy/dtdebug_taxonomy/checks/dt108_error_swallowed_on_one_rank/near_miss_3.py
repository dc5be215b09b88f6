"""The handler does the backward pass another way."""

from torch.nn.parallel import DistributedDataParallel as DDP


def train(model, loader, manager, optimizer):
    model = DDP(model)
    for batch in loader:
        loss = model(batch).mean()
        try:
            manager.backward(loss)
        except Exception:
            loss.backward()
        optimizer.step()
