import torch
import torch.distributed as dist


def train_step(model, batch, criterion, optimizer):
    features = model(batch)
    world = dist.get_world_size()
    flat = features.new_empty(world * features.shape[0], features.shape[1])
    dist.all_gather_into_tensor(flat, features)  # dt: DT405
    loss = criterion(flat, batch)
    loss.backward()
    optimizer.step()
