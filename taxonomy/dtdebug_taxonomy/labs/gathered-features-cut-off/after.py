"""Learns to match pairs, with the samples of all ranks as negatives."""

import torch
import torch.distributed as dist


def train() -> None:
    torch.manual_seed(0)
    image, text = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    parameters = [*image.parameters(), *text.parameters()]
    torch.manual_seed(dist.get_rank() + 1)  # each rank draws samples of its own
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    targets = torch.arange(8) + 8 * dist.get_rank()
    for _ in range(12):
        optimizer.zero_grad()
        x = torch.randn(8, 4)
        features = text(x)
        parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, features)
        parts[dist.get_rank()] = features
        logits = image(x) @ torch.cat(parts).T
        torch.nn.functional.cross_entropy(logits, targets).backward()
        for p in parameters:
            if p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
