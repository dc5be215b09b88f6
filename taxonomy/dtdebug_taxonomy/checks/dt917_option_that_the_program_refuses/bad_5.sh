#!/bin/bash
torchrun --nproc-per-node=4 program_5.py --epochs 3 --warmup 5 --hidden-size 64
torchrun --nproc-per-node=4 program_5.py --hidden_size 64  # dt: DT917
