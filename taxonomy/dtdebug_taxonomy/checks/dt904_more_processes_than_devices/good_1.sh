CUDA_VISIBLE_DEVICES=1,2 torchrun --nproc_per_node=2 train.py
CUDA_VISIBLE_DEVICES=$GPUS torchrun --nproc_per_node=4 train.py
CUDA_VISIBLE_DEVICES=0,1,2,3 torchrun --nproc_per_node 2 eval.py
