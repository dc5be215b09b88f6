NCCL_DEBUG=INFO  # dt: DT910
torchrun --nproc_per_node 4 train.py
