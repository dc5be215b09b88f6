torchrun --nproc_per_node 8 program_1.py  # dt: DT919
