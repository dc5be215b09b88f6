import torch
import torch.distributed as dist
import torch.distributed.nn.functional as functional


def covariance_loss(features):
    covariance = functional.all_reduce(torch.mm(features.t(), features))
    return covariance.pow(2).mean()
