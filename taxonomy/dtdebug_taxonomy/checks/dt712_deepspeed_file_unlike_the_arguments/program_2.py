from program_4 import main

if __name__ == "__main__":
    main()
