FROM pytorch/pytorch
COPY . /app
CMD python -u /app/torch.py --epochs 3  # dt: DT912
