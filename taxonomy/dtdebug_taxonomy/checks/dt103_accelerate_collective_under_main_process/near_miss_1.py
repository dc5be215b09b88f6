from functools import reduce

from accelerate import Accelerator

accelerator = Accelerator()
if accelerator.is_main_process:
    total = reduce(lambda a, b: a + b, rows)
    collector.gather(rows)
    tracker.save_state("tracker.json")
