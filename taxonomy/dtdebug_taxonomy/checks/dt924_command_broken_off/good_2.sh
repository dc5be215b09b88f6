ARGS="
  --lr 1e-4
  --epochs 3
"
python train.py $ARGS
