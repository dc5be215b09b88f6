FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
RUN python3 -m pip install horovod torch==2.3.0  # dt: DT911
