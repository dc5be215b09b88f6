import torch

scaler = torch.amp.GradScaler()
for x, y in loader:
    loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # dt: DT317
    scaler.step(optimizer)
    scaler.update()
