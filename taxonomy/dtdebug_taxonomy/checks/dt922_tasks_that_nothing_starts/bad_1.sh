#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
export MASTER_PORT=12321
python program_1.py --distributed  # dt: DT922
