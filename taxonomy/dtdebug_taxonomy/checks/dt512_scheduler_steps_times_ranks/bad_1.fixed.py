import torch.distributed as dist
from transformers import get_cosine_schedule_with_warmup


def schedule(optimizer, steps, world_size):
    return get_cosine_schedule_with_warmup(
        optimizer,
        num_warmup_steps=100,
        num_training_steps=steps,  # dt: DT512
    )


def ready():
    dist.barrier()
