#!/bin/bash
# a later argument may name another file, and the hosts are not known
deepspeed --num_gpus 4 program_1.py --deepspeed_config config_1.json "$@"
deepspeed --hostfile hosts program_1.py --deepspeed_config config_1.json
