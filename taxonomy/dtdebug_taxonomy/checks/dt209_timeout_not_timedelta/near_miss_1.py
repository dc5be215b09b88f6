import requests
import torch.distributed as dist
from torch.utils.data import DataLoader
from transformers import TrainingArguments

dist.init_process_group("gloo")
loader = DataLoader([1, 2], timeout=30)
requests.get("http://localhost", timeout=5)
arguments = TrainingArguments("out", ddp_timeout=7200)
