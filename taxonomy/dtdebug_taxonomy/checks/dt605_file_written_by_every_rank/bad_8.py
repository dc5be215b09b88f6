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
            path = self.folder / f"step_{step}"
            if path.exists():
                shutil.rmtree(path)  # dt: DT605
