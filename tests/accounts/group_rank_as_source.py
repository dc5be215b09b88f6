import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, lead=0):
        dist.init_process_group("gloo")
        self.group = dist.new_group([1])
        self.lead = lead

    def sync(self, weights):
        if dist.get_rank() == 1:
            dist.broadcast(weights, src=self.lead, group=self.group)


trainer = Trainer()
trainer.sync(torch.zeros(3))
