import torch

scaler = torch.cuda.amp.GradScaler(enabled=False)
scaler.scale(loss).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
