#!/bin/bash
accelerate launch --config_file config_2.yaml program_2.py --gradient_accumulation_steps 1
