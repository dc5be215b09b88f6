import math

import torch
from accelerate import Accelerator
from diffusers.optimization import get_scheduler


def main(args, model, loader):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    optimizer = torch.optim.AdamW(model.parameters())
    if args.max_train_steps is None:
        own = math.ceil(len(loader) / accelerator.num_processes)
        steps = args.num_train_epochs * math.ceil(own / args.accumulation) * accelerator.num_processes
    else:
        steps = args.max_train_steps * accelerator.num_processes
    schedule = get_scheduler("constant", optimizer=optimizer, num_training_steps=steps)
    return accelerator.prepare(model, optimizer, loader, schedule)
