import torch
import torch.distributed as dist


def gather(parts, boxes):
    dist.all_gather_object(parts, boxes)


def evaluate(model, loader):
    results = []
    for batch in loader:
        boxes = model(batch)
        boxes = boxes[boxes[:, 4] > 0.5]
        if boxes.numel() == 0:  # dt: DT124
            continue
        parts = [None] * dist.get_world_size()
        gather(parts, boxes)
        results += parts
    return torch.cat(results)
