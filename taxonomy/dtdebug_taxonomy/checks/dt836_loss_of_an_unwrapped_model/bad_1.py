import torch
from accelerate import Accelerator


def train(args, unet, loader):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=args.lr)
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    unet = accelerator.unwrap_model(unet)
    for batch in loader:
        prediction = unet(batch["latents"], batch["steps"]).sample  # dt: DT836
        loss = torch.nn.functional.mse_loss(prediction, batch["noise"])
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
