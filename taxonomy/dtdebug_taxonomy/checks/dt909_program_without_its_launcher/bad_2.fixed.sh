source activate pytorch
cd "$(dirname "$0")"
torchrun --standalone --nproc-per-node=gpu ./program_2.py  # dt: DT909
