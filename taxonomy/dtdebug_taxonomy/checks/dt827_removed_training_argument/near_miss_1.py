from mine import TrainingArguments

args = TrainingArguments("out", per_gpu_train_batch_size=8, no_cuda=True)
