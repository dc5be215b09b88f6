source activate pytorch
cd "$(dirname "$0")"
python3 -u ./program_2.py  # dt: DT909
