import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, net):
        self.net = net.cuda(0)  # dt: DT203
        self.ones = torch.ones(1, device="cuda:1")  # dt: DT203


def main(net):
    dist.init_process_group("nccl")
    torch.cuda.set_device(0)  # dt: DT203
    return Trainer(net)


if __name__ == "__main__":
    main(torch.nn.Linear(1, 1))
