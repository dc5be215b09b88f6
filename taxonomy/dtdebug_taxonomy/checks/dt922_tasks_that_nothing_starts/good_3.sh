#!/bin/bash
#SBATCH --ntasks=8
python program_2.py
