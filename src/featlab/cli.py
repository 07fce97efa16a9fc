"""The command line: parsing only, each command is one library call."""

from __future__ import annotations

import sys

import click


class _OneSentence(click.Group):
    """Bad input is answered with one sentence and exit 2, never with a traceback."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except ValueError as error:
            if type(error).__name__ != "InputError":
                raise
            click.echo(f"featlab: {error}", err=True)
            sys.exit(2)


@click.group(cls=_OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="featlab")
def main():
    """A laboratory for feature-learning theory."""


@main.command()
@click.argument("file")
@click.argument("changes", nargs=-1, metavar="[data.snr=0.2 ...]")
@click.option("--seeds", default=None, type=click.IntRange(min=1), help="How many seeds to train.")
@click.option("--out", default=None, help="Folder for results and figures; out/NAME if not given.")
def run(file, changes, seeds, out):
    """Train the experiment stated in FILE (TOML), with changes; write its results and figures."""
    from featlab.report import run_file

    sys.exit(run_file(file, changes, seeds=seeds, out=out))


if __name__ == "__main__":
    main()
