import torch
import torch.distributed as dist


def detection_loss(outputs, boxes):
    count = torch.as_tensor([len(boxes)], dtype=torch.float)
    dist.all_reduce(count)
    return criterion(outputs, boxes) / count
