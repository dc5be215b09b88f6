from accelerate import Accelerator
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(args):
    accelerator = Accelerator()
    train = DataLoader(build(args), sampler=DistributedSampler(build(args), shuffle=True), batch_size=4)
    train = accelerator.prepare(train)  # dt: DT522
