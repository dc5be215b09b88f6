from accelerate import Accelerator
from transformers import get_scheduler

accelerator = Accelerator()


def build(optimizer, steps):
    total = steps * accelerator.num_processes
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=100, num_training_steps=total)
    return accelerator.prepare(optimizer, scheduler)
