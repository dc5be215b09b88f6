#!/bin/bash
accelerate launch --config_file config_2.yaml program_1.py --gradient_accumulation_steps 1 --per_device_train_batch_size 8
accelerate launch --config_file config_2.yaml program_5.py --config config_4.yaml --gradient_accumulation_steps 1
