import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, optimizer, local_rank):
        self.model = DDP(model, device_ids=[local_rank])
        self.optimizer = optimizer

    def train_step(self, batch):
        loss = self.model(batch)["loss"]
        seen = loss.detach().clone().view(1)
        if not has_inf_or_nan(seen):  # dt: DT107
            loss.backward()
            self.optimizer.step()
        else:
            print("NaN, the step is skipped")
        return seen


def has_inf_or_nan(x):
    total = float(x.float().sum())
    return total != total or total == float("inf")
