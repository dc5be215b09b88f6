#!/bin/bash
CONFIG=config_1.json
torchrun --nproc_per_node=16 program_1.py --deepspeed_config=$CONFIG  # dt: DT701
