#!/bin/bash
#SBATCH --ntasks=8
srun python program_1.py
