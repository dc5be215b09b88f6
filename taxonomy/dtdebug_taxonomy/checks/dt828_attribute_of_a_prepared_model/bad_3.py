from accelerate import Accelerator


def main(unet, loader, noise):
    accelerator = Accelerator()
    unet = accelerator.prepare_model(unet)
    for batch in loader:
        batch = batch.to(dtype=unet.dtype)  # dt: DT828
        unet(batch + noise)
