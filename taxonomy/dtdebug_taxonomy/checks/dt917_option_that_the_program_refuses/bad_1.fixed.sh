torchrun --nproc_per_node=2 program_1.py --batch-size 64 --lr 0.01  # dt: DT917
