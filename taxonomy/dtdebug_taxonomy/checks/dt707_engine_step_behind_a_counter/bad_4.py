import deepspeed


def run(model_engine, loader, accumulate):
    for number, batch in enumerate(loader, 1):
        loss = model_engine(**batch).loss
        model_engine.backward(loss)
        if number % accumulate != 0:
            continue
        with timer("step"):
            model_engine.step()  # dt: DT707
