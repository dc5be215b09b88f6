import torch.distributed as dist


class OneAfterTheOther:
    """Even ranks run the block after the odd ones: each rank comes to a barrier before or after it."""

    def __init__(self, local_rank, world_size):
        self.local_rank = local_rank
        self.world_size = world_size

    def __enter__(self):
        if self.world_size > 1 and self.local_rank % 2 == 0:
            dist.barrier()

    def __exit__(self, *error):
        if self.world_size > 1 and self.local_rank % 2 == 1:
            dist.barrier()


class Worker:
    def __init__(self, config):
        self._lora_rank = config.model.lora.rank
        self.is_lora = self._lora_rank > 0

    def build(self):
        if not self.is_lora:
            dist.barrier()
