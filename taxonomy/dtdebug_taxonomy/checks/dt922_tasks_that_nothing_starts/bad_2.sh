#!/bin/bash
#SBATCH --ntasks=8
OMP_NUM_THREADS=4 python3 -u program_1.py  # dt: DT922
