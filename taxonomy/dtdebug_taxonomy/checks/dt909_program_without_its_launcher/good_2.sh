python program_3.py
python program_4.py
