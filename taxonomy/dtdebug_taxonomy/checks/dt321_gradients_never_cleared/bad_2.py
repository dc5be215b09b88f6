from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.optim import SGD


def main():
    model = FSDP(build())
    opt = SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            opt.step()  # dt: DT321


main()
