#!/bin/bash
#SBATCH --nodes=2
export MASTER_ADDR=$(hostname)
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
echo "hosts: $hosts, $(hostname -I)"
srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500 train.py
