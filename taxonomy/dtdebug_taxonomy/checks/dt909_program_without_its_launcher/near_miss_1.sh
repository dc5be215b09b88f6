# started once for each node by another script, which says so
echo "this is $RANK"
python program_1.py
