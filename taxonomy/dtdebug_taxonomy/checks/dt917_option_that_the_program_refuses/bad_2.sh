python -m torch.distributed.launch --nproc_per_node=4 program_1.py --lr 0.1  # dt: DT917
