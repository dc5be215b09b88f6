NCCL_SOCKET_IFNAME=$(ip -o -4 route show to default | awk '{print $5}')
mpirun -np 4 -x NCCL_SOCKET_IFNAME=$NCCL_SOCKET_IFNAME python train.py
NCCL_DEBUG=WARN
