from accelerate import Accelerator
from ema_pytorch import EMA


def train(args, model, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    ema = EMA(model)
    for epoch in range(args.epochs):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch))
                optimizer.step()
        ema.update()
