"""Entry point of `python -m waterfill`, which runs the command `waterfill`."""

from waterfill.cli import main

if __name__ == "__main__":
    main()
