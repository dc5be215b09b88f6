source ./cluster.env
python program_1.py
