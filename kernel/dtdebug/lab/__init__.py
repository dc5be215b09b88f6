"""Labs: break a distributed training, have it diagnosed, mend it."""
