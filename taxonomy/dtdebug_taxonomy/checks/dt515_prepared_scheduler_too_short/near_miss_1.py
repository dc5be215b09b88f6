from accelerate import Accelerator
from transformers import get_scheduler

accelerator = Accelerator()


def build(optimizer, loader, epochs):
    steps = epochs * len(loader)
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=100, num_training_steps=steps)
    return accelerator.prepare(optimizer, loader, scheduler)
