#!/bin/bash
#SBATCH --ntasks=8
WORLD_SIZE=16  # dt: DT920
export WORLD_SIZE
srun --ntasks=8 python -u program_1.py
