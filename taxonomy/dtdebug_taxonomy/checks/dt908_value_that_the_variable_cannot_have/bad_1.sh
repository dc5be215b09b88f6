export NCCL_DEBUG=DEBUG  # dt: DT908
export NCCL_P2P_DISABLE=true  # dt: DT908
TORCH_DISTRIBUTED_DEBUG=true torchrun --nproc_per_node 2 train.py  # dt: DT908
CUDA_VISIBLE_DEVICES=0, 1 torchrun --nproc_per_node 2 train.py  # dt: DT908
