run() {
  CUDA_LAUNCH_BLOCKING=1  # dt: DT910
  python3 train.py "$@"
}
run --debug
