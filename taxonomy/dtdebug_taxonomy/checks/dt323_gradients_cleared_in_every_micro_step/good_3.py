import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(generator, critic, loader, local_rank):
    generator, critic = DDP(generator, device_ids=[local_rank]), DDP(critic, device_ids=[local_rank])
    opt_g, opt_c = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    for i, x in enumerate(loader):
        opt_c.zero_grad()
        critic(x).mean().backward()
        opt_c.step()
        if i % 5 == 0:
            opt_g.zero_grad()
            critic(generator(x)).mean().backward()
            opt_g.step()
