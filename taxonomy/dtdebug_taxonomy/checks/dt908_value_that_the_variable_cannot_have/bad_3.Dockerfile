FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
ENV PYTORCH_CUDA_ALLOC_CONF=expandable_segments=True  # dt: DT908
ENV OMP_NUM_THREADS=auto  # dt: DT908
