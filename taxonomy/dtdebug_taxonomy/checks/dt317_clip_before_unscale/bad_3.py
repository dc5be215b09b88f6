import torch
from torch.nn.utils import clip_grad_value_


def train(model, optimizer, scaler, loss):
    scaler.scale(loss).backward()
    clip_grad_value_(model.parameters(), 0.5)  # dt: DT317
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
