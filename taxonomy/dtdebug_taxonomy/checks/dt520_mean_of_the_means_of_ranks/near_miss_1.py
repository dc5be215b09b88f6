"""The program counts the tokens of all ranks elsewhere."""

from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for x, y, mask, total_tokens in loader:
    loss = (model(x) * mask).sum() / mask.sum()
    (loss * mask.sum() / total_tokens).backward()
