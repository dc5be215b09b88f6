import torch


def main(model, local_rank, alone):
    if alone:
        return model.cuda()
    torch.cuda.set_device(local_rank)
    return model.cuda()
