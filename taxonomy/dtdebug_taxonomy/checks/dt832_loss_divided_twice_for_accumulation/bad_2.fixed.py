from accelerate import Accelerator

STEPS = 4
accelerator = Accelerator(gradient_accumulation_steps=STEPS)


def train(model, optimizer, loader):
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for i, batch in enumerate(loader):
        accelerator.backward(model(**batch).loss)  # dt: DT832
        if (i + 1) % STEPS == 0:
            optimizer.step()
            optimizer.zero_grad()
