from datetime import timedelta

from accelerate import Accelerator, InitProcessGroupKwargs, PartialState


def main(config):
    state = PartialState()
    handler = InitProcessGroupKwargs(timeout=timedelta(hours=2))  # dt: DT838
    accelerator = Accelerator(kwargs_handlers=[handler])
    return state, accelerator
