# More trainings: Accelerate, Lightning, contrastive losses, compressed gradients, groups; `good` is the healthy twin.
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

case, good = sys.argv[1], "good" in sys.argv[2:]
torch.manual_seed(3)


def start():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def own(n, rank):
    return torch.Generator().manual_seed(100 * n + rank)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Dropout(0.2), nn.Linear(24, 6))
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1) / self.temperature


def accelerated():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision="bf16")
    rank = accelerator.process_index
    model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), 1e-3))
    for n in range(12):
        with accelerator.accumulate(model):
            g = own(n, rank)
            x, y = torch.randn(8, 10, generator=g), torch.randint(0, 3, (8,), generator=g)
            called = model if good else accelerator.unwrap_model(model)
            loss = F.cross_entropy(called(x), y)  # HERE
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def lightning():
    import lightning as L
    from torch.utils.data import DataLoader, TensorDataset

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))

        def training_step(self, batch, index):
            x, y = batch
            loss = F.cross_entropy(self.net(x), y)
            self.log("loss", loss, on_epoch=True)
            return loss if good else loss / self.trainer.world_size  # HERE

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-3)

    data = TensorDataset(torch.randn(96, 10), torch.randint(0, 3, (96,)))
    trainer = L.Trainer(
        accelerator="cpu", devices=int(__import__("os").environ["WORLD_SIZE"]), strategy="ddp", max_epochs=1,
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Module(), DataLoader(data, 8))


def contrastive():
    rank, world = start()
    model = DDP(Encoder())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for n in range(6):
        x = torch.randn(6, 10, generator=own(n, rank))
        a, b = model(torch.cat([x, x + 0.01])).chunk(2)
        held = [torch.empty_like(b) for _ in range(world)]
        dist.all_gather(held, b.detach())
        held[rank] = b
        logits = a @ torch.cat(held).T
        F.cross_entropy(logits, torch.arange(6) + 6 * rank).backward()
        optimizer.step()
        optimizer.zero_grad()


def compressed():
    rank, _ = start()
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = DDP(nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 3)))
    if not good:
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        g = own(n, rank)
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 10, generator=g)), torch.randint(0, 3, (8,), generator=g)).backward()
        optimizer.step()


def hook_that_sums():
    rank, world = start()
    model = DDP(nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 3)))

    def hook(_state, bucket):
        if good:
            bucket.buffer().div_(dist.get_world_size())
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])

    model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        g = own(n, rank)
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 10, generator=g)), torch.randint(0, 3, (8,), generator=g)).backward()
        optimizer.step()


def noise_of_the_device():
    """Not deterministic: noise that no generator of torch draws."""
    import os

    rank, _ = start()

    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(10, 3)

        def forward(self, x):
            if not good:
                x = x + int.from_bytes(os.urandom(2)) / 65536
            return self.net(x)

    model = DDP(Noisy())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        g = own(n, rank)
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 10, generator=g)), torch.randint(0, 3, (8,), generator=g)).backward()
        optimizer.step()


def one_layer_left_out():
    rank, world = start()
    model = nn.ModuleDict({"a": nn.Linear(10, 24), "b": nn.Linear(24, 24), "c": nn.Linear(24, 3)})
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        g = own(n, rank)
        optimizer.zero_grad()
        h = torch.relu(model["b"](torch.relu(model["a"](torch.randn(8, 10, generator=g)))))
        F.cross_entropy(model["c"](h), torch.randint(0, 3, (8,), generator=g)).backward()
        for name, p in model.named_parameters():
            if good or not name.startswith("b."):
                dist.all_reduce(p.grad)
                p.grad /= world
        optimizer.step()


def half_of_the_group():
    """Two ranks of three train together, the third has its own group."""
    rank, world = start()
    first = dist.new_group([0, 1])
    last = dist.new_group(list(range(2, world)))
    group = None if good else (first if rank < 2 else last)
    model = nn.Linear(10, 3)
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in range(6):
        g = own(n, rank)
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 10, generator=g)), torch.randint(0, 3, (8,), generator=g)).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, group=group)
            p.grad /= world if good else dist.get_world_size(group)
        optimizer.step()


def no_optimizer():
    rank, _ = start()
    model = DDP(nn.Linear(10, 3))
    for n in range(3):
        model(torch.randn(8, 10, generator=own(n, rank))).pow(2).mean().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None


globals()[case]()
if dist.is_initialized():
    dist.destroy_process_group()
