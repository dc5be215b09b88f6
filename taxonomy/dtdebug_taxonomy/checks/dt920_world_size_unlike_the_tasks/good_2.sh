#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
export WORLD_SIZE=$SLURM_NTASKS
srun python program_1.py
