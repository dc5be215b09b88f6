import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(local_rank, generator, loader):
    generator = DDP(generator.cuda(), device_ids=[local_rank])
    critic = nn.Conv2d(3, 1, 4).cuda()
    steps = torch.optim.Adam(generator.parameters())
    critic_steps = torch.optim.Adam(critic.parameters(), lr=1e-4)  # dt: DT324
    for real in loader:
        fake = generator(real)
        (critic(fake.detach()).mean() - critic(real).mean()).backward()
        critic_steps.step()
        steps.zero_grad()
        (-critic(fake)).mean().backward()
        steps.step()
