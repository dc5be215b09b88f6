import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from llama import Block, Llama, tokens


class Builder:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))

    def model(self):
        return Llama(self.cfg["layers"], self.cfg["width"]).to(self.device)

    def optimizer(self, model):
        decay = [p for p in model.parameters() if p.dim() > 1]
        rest = [p for p in model.parameters() if p.dim() <= 1]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=self.cfg["lr"])

    def shard(self, model):
        for block in model.modules():
            if isinstance(block, Block):
                fully_shard(block)
        fully_shard(model)

    def build(self):
        model = self.model()
        self.shard(model)
        optimizer = self.optimizer(model)
        return model, optimizer


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model, optimizer = Builder({"layers": 24, "width": 2048, "lr": 3e-4}).build()
    for x, y in tokens(dist.get_rank(), dist.get_world_size()):
        loss = model(x.cuda(), y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
