#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
srun python train.py
srun --ntasks-per-node=1 torchrun --nnodes 2 --nproc_per_node 8 train.py
