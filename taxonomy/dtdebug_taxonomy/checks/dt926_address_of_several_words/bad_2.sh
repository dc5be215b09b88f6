#!/bin/bash
#SBATCH --nodes=2
HOSTS=`scontrol show hostnames $SLURM_JOB_NODELIST`
srun torchrun --nnodes=2 --node-rank=$SLURM_NODEID --master-addr $HOSTS --master-port 29500 --nproc-per-node=4 train.py  # dt: DT926
