from transformers import TrainingArguments as TA

args = TA(output_dir="out", use_cpu=True)  # dt: DT827
