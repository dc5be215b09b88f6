cat <<EOF
python train.py
--lr 0.1
EOF
