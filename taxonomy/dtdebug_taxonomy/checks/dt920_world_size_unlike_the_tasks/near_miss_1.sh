#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
export WORLD_SIZE=2
srun -n $TASKS python program_1.py
srun --ntasks=2 python other.py
