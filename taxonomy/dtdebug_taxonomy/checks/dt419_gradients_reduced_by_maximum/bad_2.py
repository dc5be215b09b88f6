from torch.distributed import ReduceOp, all_reduce


def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        for _, param in model.named_parameters():
            if param.grad is not None:
                all_reduce(param.grad.data, ReduceOp.MIN)  # dt: DT419
        optimizer.step()
        optimizer.zero_grad()
