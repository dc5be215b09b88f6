ARGS=(
  --lr 1e-4  # as in the paper
  --epochs 3
)
python train.py "${ARGS[@]}"
