#!/bin/bash
#SBATCH --nodes=2
export NCCL_DEBUG=INFO
export NCCL_SOCKET_IFNAME=eth0  # dt: DT901
export NCCL_P2P_NET_DISABLE=1  # dt: DT901
export NCCL_TIMEOUT=3600  # dt: DT901
srun torchrun --nnodes 2 --nproc_per_node 4 train.py
