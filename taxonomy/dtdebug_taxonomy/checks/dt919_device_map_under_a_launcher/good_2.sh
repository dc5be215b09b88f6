torchrun --nproc_per_node 8 program_3.py
