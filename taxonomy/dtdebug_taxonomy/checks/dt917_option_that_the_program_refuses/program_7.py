from dataclasses import dataclass

import torch.distributed as dist
from program_library import add_options
from program_11 import get_parser
from transformers import HfArgumentParser, TrainingArguments


@dataclass
class Arguments(TrainingArguments):
    folder: str = "data"


def from_classes():
    parser = HfArgumentParser(Arguments)
    return parser.parse_args_into_dataclasses()


def from_options():
    parser = get_parser()
    add_options(parser)
    return parser.parse_args()


dist.init_process_group("nccl")
