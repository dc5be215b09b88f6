torchrun --standalone --nproc-per-node=2 program_4.py  # dt: DT918
