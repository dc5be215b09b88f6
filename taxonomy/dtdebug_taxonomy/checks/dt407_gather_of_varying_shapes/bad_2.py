import torch
from torch.distributed import all_gather, get_world_size


class Evaluator:
    def gather_ids(self, ids):
        seen = torch.unique(ids).cuda()
        out = [torch.empty_like(seen) for _ in range(get_world_size())]
        all_gather(out, seen)  # dt: DT407
        return out
