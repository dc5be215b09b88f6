import os
import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, model):
        self.rank = int(os.environ.get('RANK', 0))
        self.model = model.to("cuda:%d" % int(os.environ["LOCAL_RANK"]))  # dt: DT202
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # dt: DT202

    def batch(self, x):
        return x.cuda(int(os.environ["LOCAL_RANK"]), non_blocking=True)  # dt: DT202
