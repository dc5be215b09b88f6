import torch


def step(loss):
    if use_amp:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
    else:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
