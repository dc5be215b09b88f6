from torch import distributed as D
import torch


class Evaluator:
    def __init__(self, model):
        self.model = model
        self.rank = D.get_rank()

    def collect(self, preds):
        buf = torch.empty(preds.shape, device=preds.device)
        everything = D.get_world_size() * [buf]  # dt: DT401
        D.all_gather(tensor=preds, tensor_list=everything)
        return torch.cat(everything)
