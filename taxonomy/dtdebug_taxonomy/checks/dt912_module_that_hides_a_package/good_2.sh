python tools/convert.py --to torch.py
cat torch.py | head
