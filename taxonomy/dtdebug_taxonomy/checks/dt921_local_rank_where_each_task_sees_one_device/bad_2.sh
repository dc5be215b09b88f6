#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
srun --gpu-bind=single:1 python program_1.py  # dt: DT921
