from accelerate import Accelerator


def train(args, model, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=args.steps)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for i, batch in enumerate(loader):
        accelerator.backward(model(**batch).loss)
        if (i + 1) % args.steps == 0:
            optimizer.step()
            optimizer.zero_grad()
