from accelerate import Accelerator


def train(args, model, loader, weights):
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = (model(batch) * weights).sum() / weights.sum()
            accelerator.backward(loss)
            accelerator.log({"loss": loss.item() / args.gradient_accumulation_steps})
