#!/bin/bash
deepspeed --num_gpus 8 program_1.py --deepspeed --deepspeed_config config_1.json
