import os

import torch
from torch import load
from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model, snapshot_path):
        self.gpu_id = int(os.environ["LOCAL_RANK"])
        self.model = model.to(self.gpu_id)
        if os.path.exists(snapshot_path):
            self._load_snapshot(snapshot_path)
        self.model = DistributedDataParallel(self.model, device_ids=[self.gpu_id])

    def _load_snapshot(self, snapshot_path):
        snapshot = load(snapshot_path, weights_only=False)  # dt: DT601
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.optimizer.load_state_dict(torch.load(os.path.join(self.folder, "opt.pth")))  # dt: DT601


def main():
    init_process_group(backend="nccl")
    Trainer(build(), "snapshot.pt")


main()
