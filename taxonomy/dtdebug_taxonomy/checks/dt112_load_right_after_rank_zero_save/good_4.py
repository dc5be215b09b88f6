import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from transformers import AutoTokenizer

from gpt import GPT


def tokenize_corpus(text_file, target, tokenizer):
    ids = []
    with open(text_file) as f:
        for line in f:
            ids.extend(tokenizer.encode(line))
    np.save(target, np.asarray(ids, dtype=np.uint16))


class Tokens(Dataset):
    def __init__(self, path, block):
        self.ids = np.load(path, mmap_mode="r")
        self.block = block

    def __len__(self):
        return len(self.ids) // self.block - 1

    def __getitem__(self, i):
        part = self.ids[i * self.block : (i + 1) * self.block + 1].astype(np.int64)
        return torch.from_numpy(part[:-1]), torch.from_numpy(part[1:])


def build_dataset(cfg, rank):
    target = Path(cfg["cache"]) / "train.npy"
    if rank == 0:
        tokenize_corpus(cfg["text"], target, AutoTokenizer.from_pretrained("gpt2"))
    dist.barrier()
    return Tokens(target, cfg["block"])


def main():
    cfg = {"text": "corpus.txt", "cache": "cache", "block": 512, "epochs": 3}
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dataset = build_dataset(cfg, rank)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    model = DDP(GPT().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = model(x.cuda(), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


main()
