import webdataset as wds
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
dataset = wds.WebDataset(urls, resampled=True).shuffle(1000)
