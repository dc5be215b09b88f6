#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:a100:4
#SBATCH --ntasks-per-node=1

GPUS=4  # dt: DT904
srun torchrun --nnodes 2 --nproc_per_node $GPUS --rdzv_backend c10d --rdzv_endpoint $HOST:29500 train.py
