from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def build(part, index, device, loss_fn):
    stage = PipelineStage(part, index, 4, device)
    return Schedule1F1B(stage, n_microbatches=4, loss_fn=loss_fn)
