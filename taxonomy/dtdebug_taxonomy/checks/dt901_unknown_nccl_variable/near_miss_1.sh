# a variable of the script itself
NCCL_INTERFACE=eth1
export NCCL_SOCKET_IFNAME=$NCCL_INTERFACE
torchrun --nproc_per_node 8 train.py
