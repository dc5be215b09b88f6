from transformers import Trainer

trainer = Trainer(model=None, resume_from_checkpoint=True, gpus=2)
