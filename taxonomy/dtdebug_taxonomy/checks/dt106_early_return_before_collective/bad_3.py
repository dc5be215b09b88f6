import torch.distributed as dist


class Evaluator:
    def __init__(self, args):
        self.is_main_process = args.rank == 0

    def _sync(self):
        dist.barrier()

    def run(self, loader):
        for batch in loader:
            if not self.is_main_process:
                continue
            self.score(batch)
            self._sync()  # dt: DT106

    def report(self, rows):
        if dist.is_initialized():
            if not self.is_main_process:
                return None
        out = [None] * 8
        dist.all_gather_object(out, rows)  # dt: DT106
        return out
