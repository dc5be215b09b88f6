import torch.optim as optim
from torch.distributed import init_process_group
from torch.nn import Linear
from torch.nn.parallel import DistributedDataParallel

LR = 1e-2


def main():
    init_process_group("gloo")
    net = DistributedDataParallel(Linear(2, 2))
    return optim.SGD(net.parameters(), LR, momentum=0.9)  # dt: DT509


if __name__ == "__main__":
    main()
