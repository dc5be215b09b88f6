export NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=mlx5_0,mlx5_1
NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 torchrun --nproc_per_node 4 train.py
mpirun -np 8 -x NCCL_IB_GID_INDEX=3 -x NCCL_DEBUG_SUBSYS=INIT,NET python train.py
