#!/bin/bash
#SBATCH --ntasks=8
mpirun -np 8 python program_1.py
