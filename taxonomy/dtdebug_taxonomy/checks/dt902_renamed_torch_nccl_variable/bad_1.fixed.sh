export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # dt: DT902
export NCCL_DEBUG=WARN
TORCH_NCCL_BLOCKING_WAIT=1 torchrun --nproc_per_node 4 train.py  # dt: DT902
