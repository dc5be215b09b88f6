#!/bin/bash
#SBATCH --job-name=interactive
#SBATCH --ntasks-per-node=4
srun python program_1.py
