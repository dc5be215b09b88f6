from accelerate import Accelerator


def train(args, model, optimizer, loader, schema):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            optimizer.step()
        schema.update(batch)
