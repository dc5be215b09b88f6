import torch


def main(model):
    model = model.cuda()
    torch.cuda.set_device(0)
    return model
