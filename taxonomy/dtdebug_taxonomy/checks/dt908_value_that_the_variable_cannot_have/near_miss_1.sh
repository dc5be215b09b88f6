MASTER_PORT=<port>
RANK=%r
export CUDA_VISIBLE_DEVICES=0, # the rest is for others
export NCCL_TOPO_DUMP_FILE=on NCCL_P2P_DISABLE=false
