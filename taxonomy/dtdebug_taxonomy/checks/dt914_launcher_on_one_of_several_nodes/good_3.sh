#!/bin/bash
#SBATCH --nodes=2
HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
for HOST in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  ssh $HOST "cd $PWD && torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29500 train.py" &
done
wait
