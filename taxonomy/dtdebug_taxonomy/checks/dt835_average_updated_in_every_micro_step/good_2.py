from accelerate import Accelerator
from ema_pytorch import EMA


def train(model, optimizer, loader):
    accelerator = Accelerator()
    ema = EMA(model, beta=0.9999)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            optimizer.step()
        ema.update()
