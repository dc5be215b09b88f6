#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:2
srun accelerate launch --config_file=config_1.yaml train.py  # dt: DT904
