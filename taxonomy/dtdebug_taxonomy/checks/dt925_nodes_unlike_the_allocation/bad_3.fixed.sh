#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
srun --nodes=4 --ntasks=4 torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py  # dt: DT925
