MASTER_ADDR=${MASTER_ADDR:-10.0.0.1}
export NODE_RANK=1  # dt: DT927
echo starting
python -m trainer --nodes 2
