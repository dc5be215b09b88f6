FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel
ENV OMP_NUM_THREADS=8  # dt: DT903
ENV PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True TORCH_NCCL_BLOCKING_WAIT=1  # dt: DT903
