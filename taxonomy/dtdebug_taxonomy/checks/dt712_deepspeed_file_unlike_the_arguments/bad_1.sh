#!/bin/bash
torchrun --nproc_per_node=4 program_1.py --output_dir out --deepspeed config_1.json --learning_rate 1e-4  # dt: DT712
torchrun --nproc_per_node=4 program_1.py --output_dir out --deepspeed config_1.json --fp16  # dt: DT712
deepspeed --num_gpus 4 program_1.py --deepspeed config_1.json --per_device_train_batch_size 8  # dt: DT712
