import deepspeed

model_engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=params)
for i, batch in enumerate(loader):
    loss = model_engine(batch) / 4
    model_engine.backward(loss)
    if (i + 1) % 4 == 0:
        model_engine.step()  # dt: DT707
