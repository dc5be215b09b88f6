import deepspeed
from transformers import Trainer

config = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_clipping": "auto",
    "zero_optimization": {"stage": 2},
}
deepspeed.initialize(model=model, config=config)
