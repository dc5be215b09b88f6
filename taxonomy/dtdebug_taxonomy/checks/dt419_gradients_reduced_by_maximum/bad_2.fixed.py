from torch.distributed import get_world_size
from torch.distributed import ReduceOp, all_reduce


def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        for _, param in model.named_parameters():
            if param.grad is not None:
                all_reduce(param.grad.data, ReduceOp.SUM)  # dt: DT419
                param.grad.data /= get_world_size()
        optimizer.step()
        optimizer.zero_grad()
