import torch


def loss_of(pred, target, reduction="none"):
    return torch.nn.functional.mse_loss(pred, target, reduction=reduction)


class Loop:
    def __init__(self, model, **settings):
        self.model = model
        self.settings = settings

    def step(self, x, y):
        loss = loss_of(self.model(x), y, **self.settings)
        loss.backward()
        return loss


loop = Loop(torch.nn.Linear(3, 2))
loop.step(torch.randn(5, 3), torch.randn(5, 2))
