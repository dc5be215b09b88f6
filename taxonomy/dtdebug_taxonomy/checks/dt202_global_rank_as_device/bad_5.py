import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM


def load(name):
    accelerator = Accelerator()
    device_index = accelerator.process_index
    device_map = {"": device_index}  # dt: DT202
    return AutoModelForCausalLM.from_pretrained(name, device_map=device_map)


def device_name():
    if torch.distributed.is_initialized():
        index = torch.distributed.get_rank()
    else:
        index = 0
    return f"cuda:{index}"  # dt: DT202
