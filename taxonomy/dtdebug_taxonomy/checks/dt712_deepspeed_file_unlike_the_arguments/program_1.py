from transformers import HfArgumentParser, Trainer, TrainingArguments

parser = HfArgumentParser(TrainingArguments)
(args,) = parser.parse_args_into_dataclasses()
trainer = Trainer(model=build(), args=args, train_dataset=read())
trainer.train()
