import json

import torch.distributed as dist
from pytorch_lightning import Callback
from pytorch_lightning.utilities import rank_zero_only


def write_settings(settings, path):
    if dist.get_rank() != 0:
        return
    with open(path, "w") as file:
        json.dump(settings, file)


def write_part(part, path):
    with open(path, "w") as file:
        json.dump(part, file)


def main(settings, part, folder):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if rank == 0:
        print("start")
    write_settings(settings, folder / "settings.json")
    write_part(part, folder / f"part_{rank}.json")


class Export(Callback):
    def __init__(self, folder):
        self.folder = folder

    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            (self.folder / "last.json").unlink()

    @rank_zero_only
    def on_fit_end(self, trainer, pl_module):
        (self.folder / "last.json").unlink()


class Parts(Callback):
    def on_predict_epoch_end(self, trainer, pl_module):
        with open(f"predicted_{trainer.global_rank}.json", "w") as file:
            json.dump(pl_module.predicted, file)
