python -m pkg.integrations.deepspeed
python -c "print('torch.py')" horovod.py
pytest tests/deepspeed.py
