import torch.distributed as dist
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
with accelerator.main_process_first():
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    data = tokenize(load())
dist.barrier()
