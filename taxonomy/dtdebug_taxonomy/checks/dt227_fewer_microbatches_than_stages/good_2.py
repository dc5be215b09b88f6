from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def build(part, index, device, loss_fn):
    stage = PipelineStage(part, index, 4, device)
    return ScheduleGPipe(stage, n_microbatches=2, loss_fn=loss_fn)
