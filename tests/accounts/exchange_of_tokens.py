"""Exchanges tokens between experts, one on each rank."""
import torch
import torch.distributed as dist
from torch import nn


class Router(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts)

    def forward(self, tokens):
        choice = self.gate(tokens).argmax(dim=-1)
        order = choice.argsort()
        counts = torch.bincount(choice, minlength=self.gate.out_features)
        return order, counts


class Exchange:
    def __init__(self, group=None):
        self.group = group

    def sizes(self, counts):
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts, group=self.group)
        return theirs

    def __call__(self, tokens, counts):
        theirs = self.sizes(counts)
        send, receive = counts.tolist(), theirs.tolist()
        arrived = tokens.new_empty((sum(receive), tokens.shape[1]))
        dist.all_to_all_single(arrived, tokens, send, receive, group=self.group)
        return arrived, receive


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(5)
    router = Router(8, dist.get_world_size())
    torch.manual_seed(20 + dist.get_rank())
    tokens = torch.randn(12 + 4 * dist.get_rank(), 8)
    order, counts = router(tokens)
    arrived, _ = Exchange()(tokens[order], counts)
    print(arrived.shape)
    dist.destroy_process_group()


main()
