#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
srun --nodes=2 --ntasks=2 torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py
