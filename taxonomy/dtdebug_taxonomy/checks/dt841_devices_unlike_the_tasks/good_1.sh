#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
srun python program_1.py
