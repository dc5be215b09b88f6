import webdataset as wds
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
dataset = wds.WebDataset(urls, nodesplitter=wds.split_by_node).decode("pil")
