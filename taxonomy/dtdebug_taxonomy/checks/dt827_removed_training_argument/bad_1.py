from transformers import Trainer, TrainingArguments

arguments = TrainingArguments(
    "out",
    per_gpu_train_batch_size=8,  # dt: DT827
    num_train_epochs=3,
)
Trainer(model, arguments, train_dataset=data).train()
