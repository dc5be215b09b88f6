from accelerate import Accelerator


class Model:
    def __init__(self):
        accelerator = Accelerator()
        self._rank = accelerator.process_index  # dt: DT220
        self._world_size = accelerator.num_processes
