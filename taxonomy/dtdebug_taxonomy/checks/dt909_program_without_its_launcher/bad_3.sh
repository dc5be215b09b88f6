for seed in 1 2 3; do echo $seed; done
python -m program_2  # dt: DT909
