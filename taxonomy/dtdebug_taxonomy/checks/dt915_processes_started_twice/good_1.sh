python program_1.py
