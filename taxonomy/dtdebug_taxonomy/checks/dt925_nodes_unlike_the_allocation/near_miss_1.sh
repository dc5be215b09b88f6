#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
for size in 1 2; do
  srun --nodes=$size torchrun --nnodes=$size --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py
done
