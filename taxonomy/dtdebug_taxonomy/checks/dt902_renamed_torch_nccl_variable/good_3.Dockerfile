FROM nvidia/cuda:11.8.0-devel-ubuntu22.04
RUN pip install torch==2.0.1
ENV NCCL_ASYNC_ERROR_HANDLING=1
