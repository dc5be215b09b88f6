import deepspeed

engine, optimizer, loader, scheduler = deepspeed.initialize(model=model, config=config)
for i, batch in enumerate(loader):
    engine.backward(engine(batch))
    engine.step()
    if i % 100 != 0:
        continue
    scheduler.step()
