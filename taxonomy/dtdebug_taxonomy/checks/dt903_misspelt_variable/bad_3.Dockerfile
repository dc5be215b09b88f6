FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel
ENV OMP_NUM_THREAD=8  # dt: DT903
ENV PYTORCH_CUDA_ALLOC_CONFIG=expandable_segments:True TORCH_NCCL_BLOKING_WAIT=1  # dt: DT903
