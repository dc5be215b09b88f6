import deepspeed as ds

engine = ds.initialize(model=net, config="ds.json")[0]
it = 0
while True:
    it += 1
    engine.backward(engine(next(data)))
    if not it % 8:
        engine.step()  # dt: DT707
        print(it)
