#!/bin/bash
GPUS=8
python -m torch.distributed.run --nproc_per_node=$GPUS program_1.py --epochs 3  # dt: DT915
