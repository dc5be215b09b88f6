#!/bin/bash
#SBATCH -N 1
#SBATCH --ntasks-per-node 8
srun python program_4.py  # dt: DT841
