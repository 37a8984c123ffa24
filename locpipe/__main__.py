"""`python -m locpipe`: the command line, where the script is not on the path."""

from locpipe.cli import main

if __name__ == "__main__":
    main()
