import json

import torch
import torch.distributed as dist
from pytorch_lightning import Callback


def write_settings(settings, path):
    with open(path, "w") as file:
        json.dump(settings, file)


@torch.distributed.elastic.multiprocessing.errors.record
def main(settings, folder):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        print("start")
    if dist.get_rank() == 0:
        write_settings(settings, folder / "settings.json")  # dt: DT605


class Export(Callback):
    def __init__(self, folder):
        self.folder = folder

    def on_train_epoch_end(self, trainer, pl_module):
        last = self.folder / "last.json"
        if last.exists():
            if trainer.is_global_zero:
                last.unlink()  # dt: DT605
        if trainer.is_global_zero:
            write_settings(pl_module.hparams, self.folder / "hparams.json")  # dt: DT605
