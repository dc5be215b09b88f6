from accelerate import Accelerator
from mine import Loop


def train(args, model, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    Loop(accelerator, model, optimizer, loader).run()
