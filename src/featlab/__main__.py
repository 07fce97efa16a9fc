"""`python -m featlab` is the command `featlab`."""

from featlab.commands.cli import command

command()
