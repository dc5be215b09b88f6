#!/bin/bash
#SBATCH -N 4
#SBATCH --ntasks-per-node=4
export WORLD_SIZE=$SLURM_NNODES  # dt: DT920
srun python program_1.py
