"""`python -m featlab` is the command `featlab`."""

from featlab.commands.cli import main

main(prog_name="featlab")
