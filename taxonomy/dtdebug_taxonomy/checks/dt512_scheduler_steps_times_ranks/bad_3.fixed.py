import torch.distributed as dist
from transformers import get_scheduler


class Trainer:
    def __init__(self, args, optimizer):
        self.world_size = dist.get_world_size()
        self.scheduler = get_scheduler(
            "cosine",
            optimizer,
            num_warmup_steps=args.warmup,  # dt: DT512
            num_training_steps=args.steps,
        )
