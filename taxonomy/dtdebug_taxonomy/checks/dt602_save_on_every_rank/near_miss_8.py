import torch
import torch.distributed as dist


def keep(model, path):
    torch.save(model.state_dict(), path)


def learn(model, steps, folder):
    rank = dist.get_rank()
    for step in range(steps):
        if step % 100 == 0:
            keep(model.part, f"{folder}/part_{step}_{rank}.pt")
    if rank == 0:
        keep(model, f"{folder}/model.pt")
