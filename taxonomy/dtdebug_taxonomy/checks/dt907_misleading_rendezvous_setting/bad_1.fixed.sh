#!/bin/bash
#SBATCH --nodes=4
HOST=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1 || echo localhost)  # dt: DT907
srun torchrun --nnodes 4 --nproc_per_node 8 \
  --rdzv-backend=c10d --rdzv-endpoint=$HOST:29500 \
  train.py  # dt: DT907
