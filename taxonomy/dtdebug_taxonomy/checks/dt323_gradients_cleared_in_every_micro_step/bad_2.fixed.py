from accelerate import Accelerator


def train(args, model, optimizer, loader, loss_of):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = loss_of(model, batch)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
