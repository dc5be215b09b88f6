import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def build(part, device, loss_fn, args):
    stage = PipelineStage(part, dist.get_rank(), dist.get_world_size(), device)
    return Schedule1F1B(stage, args.microbatches, loss_fn=loss_fn)
