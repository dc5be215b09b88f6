from torch.utils.data import DistributedSampler
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def main(model, dataset):
    dist.init_process_group("nccl")
    model = DDP(model)
    loader = DataLoader(dataset, batch_size=32, sampler=DistributedSampler(dataset))  # dt: DT501
    for x, y in loader:
        model(x).backward()


if __name__ == "__main__":
    main(None, None)
