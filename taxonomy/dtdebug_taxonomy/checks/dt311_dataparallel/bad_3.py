import torch.nn as nn


class Trainer:
    def __init__(self, model):
        self.model = nn.DataParallel(model, device_ids=[0, 1, 2, 3]).cuda()  # dt: DT311
