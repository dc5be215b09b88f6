import torch.distributed as dist


class Collector:
    def collect(self, outputs):
        hard = [o for o in outputs if o["loss"] > self.limit]
        if len(hard) == 0:  # dt: DT121
            return None
        gathered = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(hard, gathered, dst=0)
        return gathered
