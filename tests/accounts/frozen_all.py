"""Fine-tune the head of a small network."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Classifier(nn.Module):
    def __init__(self, width=24, classes=5):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(torch.relu(self.encoder(x)))


def freeze(model, keep):
    """Freeze all parameters but those whose name begins with one of the words."""
    trained = 0
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(any(name.startswith(word) for word in keep))
        trained += parameter.requires_grad
    return trained


def batches(count, size):
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(count):
        yield torch.randn(size, 10, generator=generator), torch.randint(5, (size,), generator=generator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", nargs="+", default=["classifier"])
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Classifier()
    trained = freeze(model, args.train)
    if dist.get_rank() == 0:
        print("parameters to train:", trained)
    model = DDP(model)
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-3)
    for features, labels in batches(args.steps, 8):
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
