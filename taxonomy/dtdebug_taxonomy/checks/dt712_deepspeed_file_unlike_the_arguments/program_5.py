from trl import SFTConfig, SFTTrainer, TrlParser

(args,) = TrlParser(SFTConfig).parse_args_and_config()
SFTTrainer(model=build(), args=args, train_dataset=read()).train()
