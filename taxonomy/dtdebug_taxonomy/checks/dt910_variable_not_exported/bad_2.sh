#!/bin/bash
#SBATCH --nodes=2
export MASTER_PORT=29500
NCCL_SOCKET_IFNAME=ib0; NCCL_IB_HCA=mlx5  # dt: DT910
TORCH_DISTRIBUTED_DEBUG=DETAIL  # dt: DT910
srun python train.py
