import os
import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, net):
        self.net = net.cuda(int(os.environ["LOCAL_RANK"]))  # dt: DT203
        self.ones = torch.ones(1, device=f"cuda:{os.environ['LOCAL_RANK']}")  # dt: DT203


def main(net):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # dt: DT203
    return Trainer(net)


if __name__ == "__main__":
    main(torch.nn.Linear(1, 1))
