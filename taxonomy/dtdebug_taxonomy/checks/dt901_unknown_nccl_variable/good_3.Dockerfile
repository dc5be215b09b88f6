FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
ARG NCCL_VERSION=2.21.5-1
ENV NCCL_TESTS_VERSION=2.13 NCCL_NET_PLUGIN=none
RUN apt-get install -y libnccl2=${NCCL_VERSION}
