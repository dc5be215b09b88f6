#!/bin/bash
deepspeed --num_gpus 4 program_1.py --deepspeed config_1.json --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 4 --learning_rate 0.00002 --weight_decay 0.1 --bf16 --max_grad_norm 1
