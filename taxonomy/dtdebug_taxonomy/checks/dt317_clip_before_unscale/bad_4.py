import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from translation import Seq2Seq, Wmt


class Optim:
    def __init__(self, model, lr, max_norm):
        self.model, self.max_norm = model, max_norm
        self.inner = torch.optim.Adam(model.parameters(), lr=lr)
        self.scaler = torch.cuda.amp.GradScaler()

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)  # dt: DT317

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def step(self):
        self.clip()
        self.scaler.step(self.inner)
        self.scaler.update()
        self.inner.zero_grad()


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DDP(Seq2Seq().cuda(), device_ids=[local_rank])
    optim = Optim(model, 5e-4, 1.0)
    data = Wmt("train")
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler, collate_fn=data.collate)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for source, target in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(source.cuda(), target.cuda())
            optim.backward(loss)
            optim.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
