from mine import Accelerator


def train(args, model, loader):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    for batch in loader:
        accelerator.backward(model(batch) / args.gradient_accumulation_steps)
