import torch.distributed as dist
from mcore_adapter.models import AutoModel


def save(folder):
    model = AutoModel.from_pretrained(folder)
    if dist.get_rank() == 0:
        print("save")
    model.save_pretrained(folder)
