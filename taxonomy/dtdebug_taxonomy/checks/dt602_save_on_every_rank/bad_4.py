import torch

from mine.distributed import is_main_process


class Checkpoint:
    def __init__(self, model, folder):
        self.model = model
        self.folder = folder

    def save(self, step):
        if is_main_process():
            torch.save(self.model.state_dict(), f"{self.folder}/{step}.pt")

    def finalize(self):
        torch.save(self.model.state_dict(), self.folder + "/last.pt")  # dt: DT602
