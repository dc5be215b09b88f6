accelerate launch --num_processes 1 program_1.py
