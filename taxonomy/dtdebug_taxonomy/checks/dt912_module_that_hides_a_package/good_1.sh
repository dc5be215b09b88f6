torchrun --nproc_per_node 2 train_deepspeed.py
python -m torch.distributed.run --nproc_per_node 2 train.py
