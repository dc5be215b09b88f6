#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
srun python program_2.py --gpus=4 --nodes=2
