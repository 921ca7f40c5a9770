"""`python -m tercet`, which is also how `torchrun -m tercet` starts."""

from tercet.cli.app import main

if __name__ == "__main__":
    main()
