python program_1.py --rank 0 --world-size 2 &
python program_1.py --rank 1 --world-size 2
