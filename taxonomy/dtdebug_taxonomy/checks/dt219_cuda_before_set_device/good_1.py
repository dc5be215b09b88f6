import torch


def main(model, local_rank):
    torch.cuda.set_device(local_rank)
    return model.cuda()
