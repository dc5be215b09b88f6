from datetime import datetime

from accelerate import Accelerator


def fit(model, optimizer, loader, until):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    epoch = 0
    while epoch < 100 and datetime.now() < until:  # dt: DT122
        for batch in loader:
            accelerator.backward(model(batch).loss)
            optimizer.step()
            optimizer.zero_grad()
        epoch += 1
