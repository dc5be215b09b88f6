from datetime import timedelta

from accelerate import Accelerator, InitProcessGroupKwargs, PartialState


def main():
    handler = InitProcessGroupKwargs(timeout=timedelta(hours=2))
    accelerator = Accelerator(kwargs_handlers=[handler])
    return accelerator, PartialState()
