#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
export MASTER_PORT=12345
export WORLD_SIZE=4  # dt: DT920
srun python program_1.py
