import torch
import torch.distributed


def covariance_loss(features):
    covariance = torch.mm(features.t(), features)
    torch.distributed.all_reduce(covariance)  # dt: DT411
    return covariance.pow(2).mean()
