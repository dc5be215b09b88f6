import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def load_pretrained(network, checkpoint):
    saved = torch.load(checkpoint, map_location="cpu")  # dt: DT601
    inner = network.module if isinstance(network, DDP) else network
    inner.load_state_dict(saved["weights"])
    inner.to("cuda")
