#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
torchrun --nnodes 2 --nproc_per_node 8 train.py
