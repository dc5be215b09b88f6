ARGS=(
  --nnodes "$NNODES"
  --node_rank "$NODE_RANK"  # dt: DT907
  --nproc_per_node 8
  --rdzv_id job1 --rdzv_backend c10d
  --rdzv_endpoint "$MASTER_ADDR:$MASTER_PORT"
)
torchrun "${ARGS[@]}" pretrain.py
export MASTER_ADDR=`hostname -I | awk '{print $1}' || echo 127.0.0.1`  # dt: DT907
