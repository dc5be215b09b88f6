#!/bin/bash
torchrun --nproc_per_node=4 program_1.py --epochs 10  # dt: DT916
