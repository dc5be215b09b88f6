import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM


def load(name):
    accelerator = Accelerator()
    return AutoModelForCausalLM.from_pretrained(name, device_map={"": accelerator.local_process_index})


def device_name(local_rank):
    if torch.distributed.is_initialized():
        index = local_rank
    else:
        index = 0
    return f"cuda:{index}"
