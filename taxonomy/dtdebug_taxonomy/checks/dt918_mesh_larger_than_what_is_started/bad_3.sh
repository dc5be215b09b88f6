torchrun program_2.py  # dt: DT918
