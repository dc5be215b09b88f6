import math
import sys

import deepspeed

engine, _, loader, _ = deepspeed.initialize(model=net, config=config)
for step, batch in enumerate(loader):
    if step < start_step:
        continue
    loss = engine(batch)
    if not math.isfinite(loss.item()):
        sys.exit("the loss is not finite")
    engine.backward(loss)
    engine.step()
