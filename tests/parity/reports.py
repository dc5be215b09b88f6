# Silent faults of public reports, rebuilt small: `reports.py CASE` has the fault, `reports.py CASE good` does not.
import copy
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

case, good = sys.argv[1], "good" in sys.argv[2:]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)


class LM(nn.Module):
    """A tiny language model."""

    def __init__(self, vocabulary=32, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.block = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids, mask=None):
        return self.head(self.block(self.embed(ids)))


def tokens(step, n=4, length=12, seed=0):
    own = torch.Generator().manual_seed(1000 * step + rank + seed)
    return torch.randint(1, 32, (n, length), generator=own)


def images(step, n=6):
    own = torch.Generator().manual_seed(77 * step + rank)
    return torch.randn(n, 3, 8, 8, generator=own), torch.randint(0, 5, (n,), generator=own)


def convnet(norm=True):
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8) if norm else nn.Identity(), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)
    )


def run(step_of, optimizer, steps=6):
    for step in range(steps):
        step_of(step)
        optimizer.step()
        optimizer.zero_grad()


def policy_past_ddp():  # jingyaogong/minimind#853
    model = DDP(LM())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    policy = model if good else model.module

    def step(n):
        ids = tokens(n)
        logits = policy(ids)  # HERE
        reward = torch.randn(4, 1, generator=torch.Generator().manual_seed(n + 10 * rank))
        logp = F.log_softmax(logits[:, :-1], -1).gather(-1, ids[:, 1:, None]).squeeze(-1)
        (-(logp * reward).mean()).backward()

    run(step, optimizer)


def token_sum_of_all(shard=True):  # verl-project/verl-SpeCo#29
    model = LM()
    if shard:
        fully_shard(model.block)
        fully_shard(model)
    else:
        model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(n):
        ids = tokens(n)
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten(), reduction="sum")
        count = torch.tensor(float(ids.numel()))
        dist.all_reduce(count)
        if good:
            loss = loss * world
        (loss / count).backward()  # HERE

    run(step, optimizer)


def raw_token_sums():  # radixark/miles#3231
    model = LM()
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(n):
        ids = tokens(n)
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten(), reduction="mean" if good else "sum")
        loss.backward()  # HERE

    run(step, optimizer)


class ArcLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.randn(16, 5) * 0.1)

    def forward(self, features, y):
        return F.cross_entropy(8 * F.normalize(features) @ F.normalize(self.W, dim=0), y)


def loss_with_weights():  # KevinMusgrave/pytorch-metric-learning#710
    trunk = DDP(nn.Sequential(nn.Flatten(), nn.Linear(192, 16)))
    criterion = DDP(ArcLoss()) if good else ArcLoss()
    optimizer = torch.optim.SGD([*trunk.parameters(), *criterion.parameters()], 0.1)

    def step(n):
        x, y = images(n)
        criterion(trunk(x), y).backward()  # HERE

    run(step, optimizer)


def lora_beside():  # kohya-ss/sd-scripts#989
    base = nn.Linear(16, 16)
    base.requires_grad_(False)
    down, up = nn.Linear(16, 4, bias=False), nn.Linear(4, 16, bias=False)
    held = nn.ModuleList([down, up])
    wrapped = DDP(held)
    old = base.forward
    base.forward = lambda x: old(x) + up(down(x))
    optimizer = torch.optim.AdamW(wrapped.parameters(), 1e-3)

    def step(n):
        x = torch.randn(8, 16, generator=torch.Generator().manual_seed(n * 10 + rank))
        base(x).pow(2).mean().backward()  # HERE
        if good:
            for p in wrapped.parameters():
                dist.all_reduce(p.grad)
                p.grad /= world

    run(step, optimizer)


def no_sampler():  # karpathy/llama2.c#522, xg-chu/CrowdDet#36
    data = TensorDataset(torch.randn(64, 12), torch.randint(0, 5, (64,)))
    sampler = DistributedSampler(data, shuffle=True) if good else None
    loader = DataLoader(data, 8, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5)))
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.classifier = nn.Linear(12, 5)
        self.discriminator = nn.Linear(12, 2)

    def forward(self, x):
        return self.classifier(x), self.discriminator(x)


def parts_of_wrapped():  # intel/e2eAIOK#198
    model = DDP(Adapter())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(n):
        own = torch.Generator().manual_seed(n * 10 + rank)
        x, y = torch.randn(8, 12, generator=own), torch.randint(0, 2, (8,), generator=own)
        if good:
            a, b = model(x)
        else:
            a, b = model.module.classifier(x), model.module.discriminator(x)  # HERE
        (F.cross_entropy(a, y) + F.cross_entropy(b, y)).backward()

    run(step, optimizer)


def mean_of_means():  # huggingface/transformers#34191 between ranks
    model = DDP(LM())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(n):
        ids = tokens(n)
        labels = ids.clone()
        labels[:, 4 + 5 * rank :] = -100
        out = model(ids).flatten(0, 1)
        if good:
            count = (labels != -100).sum().float()
            dist.all_reduce(count)
            loss = F.cross_entropy(out, labels.flatten(), reduction="sum", ignore_index=-100) * world / count
        else:
            loss = F.cross_entropy(out, labels.flatten(), ignore_index=-100)
        loss.backward()  # HERE

    run(step, optimizer)


def cleared_in_micro_steps():  # zero_grad in each micro step
    model = DDP(convnet(norm=False))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        if good:
            optimizer.zero_grad()
        for micro in range(2):
            if not good:
                optimizer.zero_grad()
            x, y = images(10 * n + micro)
            (F.cross_entropy(model(x), y) / 2).backward()
        optimizer.step()


def last_pass_without_sync():  # no_sync() also around the pass that counts
    model = DDP(convnet(norm=False))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        for micro in range(2):
            x, y = images(10 * n + micro)
            if micro == 0 or not good:
                with model.no_sync():
                    (F.cross_entropy(model(x), y) / 2).backward()
            else:
                (F.cross_entropy(model(x), y) / 2).backward()
        optimizer.step()
        optimizer.zero_grad()


def divided_by_hand():  # gradients divided again after DDP
    model = DDP(convnet())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(n):
        x, y = images(n)
        F.cross_entropy(model(x), y).backward()
        if not good:
            for p in model.parameters():
                p.grad.div_(world)  # HERE

    run(step, optimizer)


def summed_by_hand():  # all_reduce without a division
    model = convnet()
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(n):
        x, y = images(n)
        F.cross_entropy(model(x), y).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            if good:
                p.grad /= world

    run(step, optimizer)


def frozen_on_one_rank():
    model = convnet(norm=False)
    wrapped = DDP(model, find_unused_parameters=True)
    if rank == 1 and not good:
        model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(wrapped.parameters(), 0.1)

    def step(n):
        x, y = images(n)
        F.cross_entropy(wrapped(x), y).backward()

    run(step, optimizer)


def evaluation_mode_on_one_rank():
    model = DDP(LM())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    if rank == 0 and not good:
        model.eval()
        with torch.no_grad():
            model.module(tokens(99))

    def step(n):
        ids = tokens(n)
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()

    run(step, optimizer)


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Linear(12, 12, bias=False)
        self.codes.requires_grad_(False)
        self.net = nn.Linear(12, 5)

    def forward(self, x):
        return self.net(torch.tanh(self.codes(x)))


def codebook_per_rank():  # speechbrain/speechbrain#2814
    model = Quantized()
    wrapped = DDP(model)
    if not good:
        with torch.no_grad():
            model.codes.weight.copy_(torch.randn(12, 12, generator=torch.Generator().manual_seed(rank)))
    optimizer = torch.optim.SGD(wrapped.net.parameters() if hasattr(wrapped, "net") else model.net.parameters(), 0.1)

    def step(n):
        own = torch.Generator().manual_seed(n * 10 + rank)
        x, y = torch.randn(8, 12, generator=own), torch.randint(0, 5, (8,), generator=own)
        F.cross_entropy(wrapped(x), y).backward()

    run(step, optimizer)


def clipped_before_reduction():
    model = convnet(norm=False)
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(n):
        x, y = images(n)
        F.cross_entropy(model(x), y).backward()
        if not good:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        if good:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    run(step, optimizer)


def rate_of_one_rank():
    model = DDP(convnet(norm=False))
    optimizer = torch.optim.SGD(model.parameters(), 0.1 * (1 if good else rank + 1))

    def step(n):
        x, y = images(n)
        F.cross_entropy(model(x), y).backward()

    run(step, optimizer)


def step_left_out_on_one_rank():
    model = DDP(convnet(norm=False))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        x, y = images(n)
        F.cross_entropy(model(x), y).backward()
        if good or rank == 0 or n != 1:
            optimizer.step()
        optimizer.zero_grad()


def gan():  # healthy only: two models, two optimizers, detached and attached
    torch.manual_seed(0)
    g, d = DDP(nn.Linear(4, 12)), DDP(nn.Linear(12, 1), broadcast_buffers=False)
    og, od = torch.optim.Adam(g.parameters(), 1e-3), torch.optim.Adam(d.parameters(), 1e-3)
    torch.manual_seed(rank + 5)
    for _ in range(3):
        real, z = torch.randn(8, 12), torch.randn(8, 4)
        fake = g(z)
        od.zero_grad()
        (F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()).backward()
        od.step()
        og.zero_grad()
        F.softplus(-d(fake)).mean().backward()
        og.step()


def regularised():  # healthy only: weights in the loss, clipping, a schedule, bfloat16, accumulation
    model = DDP(LM())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
    for n in range(6):
        optimizer.zero_grad()
        for micro in range(2):
            ids = tokens(10 * n + micro)
            with torch.autocast("cpu", torch.bfloat16):
                loss = F.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten())
            loss = (loss + 1e-3 * sum(p.pow(2).sum() for p in model.parameters())) / 2
            if micro == 0:
                with model.no_sync():
                    loss.backward()
            else:
                loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()


def scaled_fp16():  # healthy only: a loss scaler
    model = DDP(convnet(norm=False))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for n in range(6):
        x, y = images(n)
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def sharded_bf16():  # healthy only: fully_shard with mixed precision
    from torch.distributed.fsdp import MixedPrecisionPolicy

    model = LM()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    fully_shard(model.block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(n):
        ids = tokens(n)
        F.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten()).backward()

    run(step, optimizer)


globals()[case]()
dist.destroy_process_group()
_ = copy
