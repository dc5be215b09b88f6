#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
export WORLD_SIZE=2
srun torchrun --nnodes=2 --nproc-per-node=4 train.py
