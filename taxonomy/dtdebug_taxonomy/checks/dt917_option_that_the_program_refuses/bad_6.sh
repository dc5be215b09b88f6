#!/bin/bash
torchrun --nproc-per-node=4 program_6.py --folder /data --no_shuffle --epochs 3
torchrun --nproc-per-node=4 program_6.py --folder /data --batch_size 8  # dt: DT917
torchrun --nproc-per-node=4 program_9.py --lr 0.1 --epochs 3  # dt: DT917
