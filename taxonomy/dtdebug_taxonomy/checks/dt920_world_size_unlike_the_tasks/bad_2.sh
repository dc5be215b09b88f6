#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
GPUS=4
export WORLD_SIZE=$(($SLURM_NNODES * $GPUS))  # dt: DT920
srun python program_1.py
