#!/bin/bash
accelerate launch --config_file config_2.yaml program_1.py --gradient_accumulation_steps 8  # dt: DT712
accelerate launch --config_file config_2.yaml program_1.py --max_grad_norm=0.5 --bf16 True  # dt: DT712
accelerate launch --config_file config_2.yaml program_2.py --gradient_accumulation_steps 8  # dt: DT712
accelerate launch --config_file config_2.yaml program_5.py --config config_4.yaml  # dt: DT712
