import torch.distributed as dist


class Trainer:
    def save(self):
        if (dist.is_initialized() and dist.get_rank() != 0) and not self.cfg.distribute_layers:
            return  # dt: DT106

        for part in self.parts:
            part.save()

        if dist.is_initialized():
            dist.barrier()
