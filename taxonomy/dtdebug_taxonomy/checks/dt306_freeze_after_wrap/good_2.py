from torch.nn.parallel import DistributedDataParallel as DDP


def adversarial(generator, discriminator, loader):
    generator, discriminator = DDP(generator), DDP(discriminator)
    for x in loader:
        for p in discriminator.parameters():
            p.requires_grad = False
        discriminator(generator(x)).mean().backward()
        for p in discriminator.parameters():
            p.requires_grad = True
        discriminator(x).mean().backward()
