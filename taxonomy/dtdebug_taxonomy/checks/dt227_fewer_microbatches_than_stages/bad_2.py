from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import Schedule1F1B

STAGES = 8
MICROBATCHES = 4


def build(part, index, device, loss_fn):
    stage = PipelineStage(part, stage_index=index, num_stages=STAGES, device=device)
    return Schedule1F1B(stage, n_microbatches=MICROBATCHES, loss_fn=loss_fn)  # dt: DT227
