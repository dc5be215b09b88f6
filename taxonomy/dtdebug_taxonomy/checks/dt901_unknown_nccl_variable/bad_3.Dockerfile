FROM nvcr.io/nvidia/pytorch:24.05-py3
ENV NCCL_DEBUG=INFO \
    # the card that faces the other machines
    NCCL_SOCKET_IFNAME=eth0
RUN NCCL_IB_DISABLED=1 python -m pytest tests  # dt: DT901
ENV NCCL_SHM_DISABEL 1  # dt: DT901
