import deepspeed

engine, _, _, _ = deepspeed.initialize(model=model, config=config)
for i, batch in enumerate(loader):
    engine.backward(engine(batch))
    engine.step()
    if i % 10 == 0:
        print(i)
