from transformers import HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
args.gradient_accumulation_steps = 4
Trainer(model=build(), args=args, train_dataset=read()).train()
