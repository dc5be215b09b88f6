#!/bin/bash
# the program sets it itself, a later argument may change it, another way of starting, another size of batch is looked for
accelerate launch --config_file config_2.yaml program_3.py --gradient_accumulation_steps 8
accelerate launch --config_file config_2.yaml program_1.py --gradient_accumulation_steps 8 "$@"
accelerate launch --multi_gpu --config_file config_2.yaml program_1.py --gradient_accumulation_steps 8
deepspeed --num_gpus 4 program_1.py --deepspeed config_1.json --per_device_train_batch_size 8 --auto_find_batch_size
