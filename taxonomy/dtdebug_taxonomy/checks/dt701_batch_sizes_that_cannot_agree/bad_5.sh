#!/bin/bash
deepspeed --num_gpus 4 program_1.py --deepspeed --deepspeed_config config_1.json --epochs 5  # dt: DT701
