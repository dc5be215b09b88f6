import webdataset as wds
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
dataset = wds.WebDataset(urls, shardshuffle=True, nodesplitter=wds.split_by_node).decode("pil").to_tuple("jpg", "cls")  # dt: DT518
