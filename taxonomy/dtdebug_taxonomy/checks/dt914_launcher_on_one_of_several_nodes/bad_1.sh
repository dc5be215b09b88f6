#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py  # dt: DT914
