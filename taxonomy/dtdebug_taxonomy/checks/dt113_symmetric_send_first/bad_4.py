import torch
import torch.distributed as dist


def swap(mine: torch.Tensor, partner: int) -> torch.Tensor:
    theirs = torch.empty_like(mine)
    dist.send(mine, partner)  # dt: DT113
    dist.recv(theirs, src=partner)
    return theirs
