from accelerate import Accelerator
from transformers import get_scheduler

accelerator = Accelerator()


def schedule(optimizer, steps):
    return get_scheduler(
        "cosine",
        optimizer,
        num_warmup_steps=100 * accelerator.num_processes,
        num_training_steps=steps * accelerator.num_processes,
    )
