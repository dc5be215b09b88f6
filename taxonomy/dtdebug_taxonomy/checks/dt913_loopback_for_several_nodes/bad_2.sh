#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
export MASTER_ADDR=127.0.0.1  # dt: DT913
export MASTER_PORT=29500
export NCCL_SOCKET_IFNAME=lo  # dt: DT913
srun python train.py
