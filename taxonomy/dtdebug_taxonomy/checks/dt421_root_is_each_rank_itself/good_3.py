import torch.distributed as dist


def collect(score):
    rank = dist.get_rank()
    scores = [None] * dist.get_world_size() if rank == 0 else None
    dist.gather_object(score, scores, dst=0)
    return scores
