#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
export WORLD_SIZE=$(($SLURM_NNODES * 4))
srun python program_2.py --world-size=$WORLD_SIZE
