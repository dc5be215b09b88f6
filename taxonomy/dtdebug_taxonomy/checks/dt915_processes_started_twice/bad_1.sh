torchrun --standalone --nproc-per-node=4 program_1.py  # dt: DT915
