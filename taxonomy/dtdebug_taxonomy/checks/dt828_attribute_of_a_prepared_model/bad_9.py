from options import prepare_accelerator


def main(args, denoiser, loader):
    accelerator = prepare_accelerator(args)  # of accelerate
    denoiser.requires_grad_(True)
    denoiser = accelerator.prepare(denoiser)
    for batch in loader:
        print(denoiser.dtype, batch)  # dt: DT828
