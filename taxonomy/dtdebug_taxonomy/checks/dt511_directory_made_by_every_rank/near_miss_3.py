import os

import torch.distributed as dist

dist.init_process_group("gloo")
os.makedirs(args.output_dir, exist_ok=True)
if not os.path.exists(args.output_dir):
    os.mkdir(args.output_dir)
