import torch.distributed as dist
from program_library import add_options
from program_11 import get_parser

parser = get_parser()
add_options(parser)
args = parser.parse_args()
dist.init_process_group("nccl")
