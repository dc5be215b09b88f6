FROM nvcr.io/nvidia/pytorch:24.05-py3
RUN pip install horovod && git clone https://github.com/NVIDIA/apex && pip install -v ./apex
