accelerate launch --num_machines 2 --machine_rank 0 --num_processes 16 --main_process_ip 10.0.0.1 train.py  # dt: DT923
