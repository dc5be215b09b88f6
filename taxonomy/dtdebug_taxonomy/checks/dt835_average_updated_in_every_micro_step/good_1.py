from accelerate import Accelerator
from ema_pytorch import EMA


def train(args, model, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    ema = EMA(model, beta=0.9999)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            ema.update()
