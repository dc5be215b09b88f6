import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from speech import Conformer, LibriSpeech, collate


class Loop:
    def __init__(self, accumulate=4):
        self.accumulate = accumulate
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.model = DDP(Conformer().to(self.local_rank), device_ids=[self.local_rank])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        data = LibriSpeech("train-960")
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, batch_size=8, sampler=self.sampler, collate_fn=collate, drop_last=True)

    def micro_step(self, batch):
        loss = self.model(batch.to(self.local_rank)) / self.accumulate
        loss.backward()
        return loss.detach()

    def epoch(self, number):
        self.sampler.set_epoch(number)
        self.optimizer.zero_grad()
        for i, batch in enumerate(self.loader):
            last = (i + 1) % self.accumulate == 0
            with self.model.no_sync():  # dt: DT315
                self.micro_step(batch)
            if last:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optimizer.step()
                self.optimizer.zero_grad()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    loop = Loop()
    for number in range(30):
        loop.epoch(number)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
