accelerate launch --num_processes 4 program_1.py  # dt: DT919
