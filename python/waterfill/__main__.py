"""`python -m waterfill`: the command, where its script is not on the path."""

from waterfill.cli import main

if __name__ == "__main__":
    main()
