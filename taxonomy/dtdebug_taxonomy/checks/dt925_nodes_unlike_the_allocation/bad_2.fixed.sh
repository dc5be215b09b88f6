#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
NODES=4  # dt: DT925
srun torchrun --nnodes $NODES --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py
