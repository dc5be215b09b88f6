import torch.distributed
import hydra
from torch.nn.parallel import DistributedDataParallel
from torch.utils import data as tud


class Experiment:
    def __init__(self, cfg, data, model):
        self.effective_bs = cfg.effective_bs
        self.model = DistributedDataParallel(model)
        self.loader = tud.DataLoader(data, batch_size=self.effective_bs // torch.distributed.get_world_size())  # dt: DT510


@hydra.main(config_path=None)
def main(cfg):
    Experiment(cfg, [], None)
