"""Labs: break a distributed training, have it diagnosed, fix it."""
