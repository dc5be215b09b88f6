torchrun --nproc_per_node 8 program_4.py
