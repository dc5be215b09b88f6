deepspeed --num_gpus=2 program_1.py  # dt: DT917
accelerate launch --num_processes 2 program_1.py --learning-rate=0.1  # dt: DT917
