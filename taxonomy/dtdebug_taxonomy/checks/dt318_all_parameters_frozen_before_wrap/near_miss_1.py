from peft import get_peft_model
from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, config, local_rank):
    model.requires_grad_(False)
    model = get_peft_model(model, config)
    return DDP(model, device_ids=[local_rank])
