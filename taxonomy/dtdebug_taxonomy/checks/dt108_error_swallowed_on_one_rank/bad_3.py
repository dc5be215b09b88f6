import logging

import deepspeed

engine, *_ = deepspeed.initialize(model=net, config="ds.json")
for batch in loader:
    try:
        loss = engine(batch)
        engine.backward(loss)
        engine.step()
    except KeyboardInterrupt:
        break
    except Exception:  # dt: DT108
        logging.exception("bad batch")
