NPROC_PER_NODE=8  # dt: DT927
swift sft --model base --dataset notes
