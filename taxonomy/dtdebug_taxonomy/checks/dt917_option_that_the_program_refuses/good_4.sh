#!/bin/bash
# one parser may have the options of a class of a library, the other is handed to a function that is not here
torchrun --nproc-per-node=4 program_7.py --learning_rate 0.1
torchrun --nproc-per-node=4 program_8.py --learning_rate 0.1
torchrun --nproc-per-node=4 program_10.py --no-shuffle
