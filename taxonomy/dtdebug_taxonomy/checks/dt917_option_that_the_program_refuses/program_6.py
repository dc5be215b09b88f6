from dataclasses import dataclass, field

import torch.distributed as dist
from transformers import HfArgumentParser


@dataclass
class Data:
    folder: str = field(default="data")
    shuffle: bool = True


@dataclass
class Run(Data):
    epochs: int = 3


parser = HfArgumentParser((Run,))
(run,) = parser.parse_args_into_dataclasses()
dist.init_process_group("nccl")
print(run.epochs)
