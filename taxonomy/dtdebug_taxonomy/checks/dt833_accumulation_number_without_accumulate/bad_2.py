from accelerate import Accelerator

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=8)  # dt: DT833


def train(model, optimizer, scheduler, loader):
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for epoch in range(3):
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(model(batch))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
