from accelerate import Accelerator
from diffusers.training_utils import EMAModel


def train(args, unet, optimizer, loader, loss_of):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    ema_unet = EMAModel(unet.parameters())
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(unet):
            accelerator.backward(loss_of(unet, batch))
            optimizer.step()
            ema_unet.step(unet.parameters())  # dt: DT835
            optimizer.zero_grad()
