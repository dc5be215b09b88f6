#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1  # dt: DT922
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
srun python fit.py --epochs 20
