#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --nodes=1
srun --gpus-per-task=a100:1 python -u program_1.py  # dt: DT921
