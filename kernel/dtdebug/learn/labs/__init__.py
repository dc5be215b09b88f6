"""Labs: break a distributed training run, have it diagnosed, fix it."""
