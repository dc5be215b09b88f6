#!/bin/bash
STEPS=8
deepspeed --num_gpus 2 program_1.py --deepspeed config_3.json --gradient_accumulation_steps $STEPS  # dt: DT712
deepspeed --num_gpus 2 program_1.py --deepspeed config_1.json --per_device_train_batch_size 4 --gradient_accumulation_steps 4  # dt: DT712
