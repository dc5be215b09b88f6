import math
import os
import pickle
import time
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed import all_reduce, barrier, destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

# -----------------------------------------------------------------------------
out_dir = os.path.join(os.path.dirname(os.path.abspath(__file__)), "out")
eval_interval = 4
eval_iters = 2
gradient_accumulation_steps = 4
batch_size = 4
block_size = 16
vocab_size = 40
n_embd = 16
learning_rate = 1e-3
max_iters = 10
warmup_iters = 2
# -----------------------------------------------------------------------------
ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend="gloo")
    ddp_rank = int(os.environ["RANK"])
    ddp_world_size = int(os.environ["WORLD_SIZE"])
    master_process = ddp_rank == 0
    gradient_accumulation_steps = max(1, gradient_accumulation_steps // ddp_world_size * 2)
else:
    ddp_rank, ddp_world_size, master_process = 0, 1, True
if master_process:
    os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337 + ddp_rank)
data = torch.arange(4000) * 7 % vocab_size


def get_batch(split):
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.TransformerEncoderLayer(n_embd, 2, 32, dropout=0.0, batch_first=True)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets):
        pos = torch.arange(idx.size(1))
        x = self.wte(idx) + self.wpe(pos)
        x = self.h(x)
        logits = self.lm_head(x)
        loss = F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))
        return logits, loss


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return 0.5 * (1.0 + math.cos(math.pi * ratio)) * learning_rate


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split)
            _, loss = raw_model(X, Y)
            losses[k] = loss.item()
        mean = losses.mean()
        if ddp:
            all_reduce(mean)
        out[split] = mean / ddp_world_size
    model.train()
    return out


def save_checkpoint(it):
    checkpoint = {"model": raw_model.state_dict(), "iter_num": it}
    with open(os.path.join(out_dir, "ckpt.pkl"), "wb") as f:
        pickle.dump(checkpoint, f)


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
raw_model = model
if ddp:
    model = DDP(model)
ctx = nullcontext()
t0 = time.time()
X, Y = get_batch("train")
iter_num = 0
while True:
    lr = get_lr(iter_num)
    for group in optimizer.param_groups:
        group["lr"] = lr
    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        if master_process:
            print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)
            save_checkpoint(iter_num)
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch("train")
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if master_process:
        dt = time.time() - t0
        print(f"iter {iter_num}: loss {loss.item():.4f}, time {dt * 1000:.2f}ms", flush=True)
    iter_num += 1
    if iter_num > max_iters:
        break
if ddp:
    barrier()
    destroy_process_group()
