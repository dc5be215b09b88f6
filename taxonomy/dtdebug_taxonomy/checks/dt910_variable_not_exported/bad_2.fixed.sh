#!/bin/bash
#SBATCH --nodes=2
export MASTER_PORT=29500
export NCCL_SOCKET_IFNAME=ib0; export NCCL_IB_HCA=mlx5  # dt: DT910
export TORCH_DISTRIBUTED_DEBUG=DETAIL  # dt: DT910
srun python train.py
