"""The product is a statistic of its own, no loss."""

import torch
import torch.distributed as dist


def update_covariance(buffer, features):
    c = features.T @ features
    dist.all_reduce(c)
    buffer.lerp_(c, 0.1)
