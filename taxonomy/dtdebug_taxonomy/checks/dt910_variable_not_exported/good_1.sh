export NCCL_DEBUG=INFO
NCCL_IB_DISABLE=1 torchrun --nproc_per_node 4 train.py
