"""Records of NCCL's Inspector: which collective took how long on each rank, and who held the others up."""
