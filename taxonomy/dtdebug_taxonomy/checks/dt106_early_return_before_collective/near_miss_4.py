import torch.distributed as dist


class Trainer:
    def save(self):
        if dist.get_rank() != 0 and not self.cfg.distribute_layers:
            return

        for part in self.parts:
            part.save()

        if self.cfg.distribute_layers:
            dist.barrier()

    def load(self, path):
        if dist.get_rank() != 0 and dist.get_world_size() == 1:
            return
        dist.barrier()

    def stop(self, done):
        if dist.get_rank() == 0 and done:
            self.write()
            return
        if done:
            return
        dist.barrier()
