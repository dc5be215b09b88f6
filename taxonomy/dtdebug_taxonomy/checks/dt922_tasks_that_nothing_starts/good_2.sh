#!/bin/bash
#SBATCH --ntasks=1
python program_1.py
