import shutil

import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Checkpoints:
    def __init__(self, folder, keep):
        self.folder, self.keep, self.steps = folder, keep, []
        self.is_master = dist.get_rank() == 0

    def save(self, state, step):
        dcp.save(state, checkpoint_id=self.folder / f"step_{step}")
        self.steps.append(step)

    def clean(self):
        for step in sorted(self.steps)[: -self.keep]:
            if self.is_master:
                shutil.rmtree(self.folder / f"step_{step}")

    def forget(self, step):
        shutil.rmtree(self.folder / f"rank_{dist.get_rank()}_{step}")
        shutil.rmtree(self.folder / f"step_{step}", ignore_errors=True)
