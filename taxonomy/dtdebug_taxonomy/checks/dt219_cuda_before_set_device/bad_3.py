import os

import torch


def main():
    torch.cuda.empty_cache()  # dt: DT219
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
