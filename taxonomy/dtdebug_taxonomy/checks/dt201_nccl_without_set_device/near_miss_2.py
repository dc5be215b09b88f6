import torch.distributed as dist
from transformers import AutoModelForCausalLM, Trainer

from options import read

dist.init_process_group(backend="nccl")
model = AutoModelForCausalLM.from_pretrained("gpt2").to("cuda")
Trainer(model=model, args=read()).train()
