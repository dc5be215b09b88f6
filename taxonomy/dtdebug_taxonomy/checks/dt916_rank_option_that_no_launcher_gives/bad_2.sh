N=2
python -m torch.distributed.run --standalone --nproc-per-node=$N program_2.py  # dt: DT916
