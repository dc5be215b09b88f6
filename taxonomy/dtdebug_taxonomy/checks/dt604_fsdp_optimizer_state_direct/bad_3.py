import torch
from torch import optim
from torch.distributed import fsdp


def main():
    model = fsdp.FullyShardedDataParallel(build().cuda())
    sgd = optim.SGD(params=model.parameters(), lr=0.1)
    for epoch in range(3):
        train(model, sgd)
    checkpoint = {
        "model": gather(model),
        "sgd": sgd.state_dict(),  # dt: DT604
    }
    write(checkpoint)


main()
