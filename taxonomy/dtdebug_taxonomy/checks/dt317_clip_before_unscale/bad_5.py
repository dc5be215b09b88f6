import torch


def train(model, loader, criterion, optimizer, scaler, cfg):
    for number, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if cfg.amp:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if cfg.max_norm > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.max_norm)  # dt: DT317
        if cfg.amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
