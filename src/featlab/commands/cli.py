"""The command line: parsing only, each command is one library call."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

import click

from featlab.core.words import shortened
from featlab.engine.progress import INTERRUPTED, PATIENCE, last_heard, watchdog

_LONGEST = 291  # characters of a sentence, "featlab: " aside


class _OneSentence(click.Group):
    """Bad input is answered with one sentence and exit 2, never with a traceback; Ctrl-C with one and exit 130."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise click.UsageError(shortened(error.format_message(), _LONGEST), error.ctx) from None
        except ValueError as error:
            if type(error).__name__ != "InputError":
                raise
            click.echo(f"featlab: {shortened(str(error), _LONGEST)}", err=True)
            sys.exit(2)
        except BrokenPipeError:  # who was reading has heard enough: click ends quietly
            raise
        except OSError as error:  # of a file that nobody has looked at before
            what = (
                f"{str(error.filename)!r} cannot be read or written" if error.filename else "A file cannot be used"
            )
            click.echo(f"featlab: {shortened(f'{what}: {error.strerror or error}', _LONGEST)}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo(f"featlab: interrupted ({last_heard()}); what was finished is kept.", err=True)
            sys.exit(INTERRUPTED)


def interrupt(signum: int, frame: FrameType | None) -> None:
    """Ctrl-C; a moment later where Python would ignore it, as in a callback of the garbage collector."""
    while frame is not None:
        if frame.f_code.co_name in ("_xla_gc_callback", "__del__"):
            again = threading.Timer(0.05, os.kill, (os.getpid(), signum))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def command() -> None:
    """What the shell calls.

    Interrupted while a program is compiled, JAX may crash as Python takes it apart: the process ends without that.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a script has it ignored
        signal.signal(signal.SIGINT, interrupt)
    try:
        main(prog_name="featlab")
    except SystemExit as end:
        if end.code != INTERRUPTED:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: the end of Python need not be cut short
            raise
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(INTERRUPTED)


@click.group(cls=_OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="featlab")
def main():
    """A laboratory for feature-learning theory."""


_patience_option = click.option(
    "--patience", default=PATIENCE, show_default=True, type=click.FloatRange(min=0), metavar="MINUTES",
    help="Give up after so long without progress; 0 never does.",
)  # fmt: skip
_claims_option = click.option("--claims", "folder", default=None, help="A folder with claim files of your own.")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_claims_option
def claims(as_json, folder):
    """List the claims: id, paper, one sentence, time."""
    from featlab.commands.claims import list_claims

    list_claims(as_json=as_json, folder=folder)


@main.command()
@click.argument("id")
@click.argument("changes", nargs=-1, metavar="[data.n=50 ...]")
@_claims_option
def show(id, changes, folder):
    """Show a claim: statement, formula, knobs, assumptions with their values for a setting."""
    from featlab.commands.claims import show_claim

    show_claim(id, changes, folder=folder)


@main.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Verify all claims.")
@click.option(
    "--size", default="laptop", type=click.Choice(["tiny", "smoke", "laptop", "full"]), show_default=True
)
@click.option("--seeds", default=None, type=click.IntRange(min=1), help="How many seeds.")
@click.option("--base-seed", default=None, type=click.IntRange(min=0), help="The first seed.")
@_claims_option
@click.option("--out", default=None, help="Folder for records and figures, and to go on from.")
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON, and nothing else.")
@click.option("--perturb", is_flag=True, help="Also with one knob of the setting changed at a time.")
@click.option("--again", default=None, metavar="FILE", help="Repeat the verdicts in a JSON file.")
@click.option("--decide", is_flag=True, help="On fresh seeds; the outcome enters the log of deciding runs.")
@_patience_option
def verify(ids, every, size, seeds, base_seed, folder, out, as_json, perturb, again, decide, patience):
    """Put claims to the test: supported (exit 0), refuted (1) or inconclusive (3), with the numbers."""
    from featlab.commands.claims import verify_claims

    with watchdog(patience, f"verdicts that were finished are in {out}" if out else "with --out it could go on"):
        code = verify_claims(
            ids, every=every, size=size, seeds=seeds, base_seed=base_seed, folder=folder, out=out, as_json=as_json,
            perturb=perturb, again=again, decide=decide,
        )  # fmt: skip
    sys.exit(code)


@main.command()
@click.option("--size", default="smoke", type=click.Choice(["tiny", "smoke", "laptop", "full"]), show_default=True)
@click.option("--strict", is_flag=True, help="Exit as `featlab verify` does: 1 refuted, 3 inconclusive.")
@click.option("--out", default="out/atlas", show_default=True, help="Folder for the page, and to go on from.")
@_claims_option
@click.option("--base-seed", default=None, type=click.IntRange(min=0), help="The first seed.")
@click.option("--perturb", is_flag=True, help="Also with one knob of each setting changed at a time.")
@click.option(
    "--records", default=None, metavar="DIR", help="Only read records of verdicts that are there already."
)
@click.option("--no-slices", is_flag=True, help="Leave out the curves with sliders.")
@_patience_option
def atlas(size, strict, out, folder, base_seed, perturb, records, no_slices, patience):
    """Verify everything and write one page that shows it, OUT/atlas.html; it opens from disk, without a server."""
    from featlab.atlas.atlas import write_atlas
    from featlab.engine.pool import cores

    chosen = {} if base_seed is None else {"base_seed": base_seed}
    # Small sizes compile more than they compute; large ones need the memory and the cores for one claim.
    chosen["processes"] = min(cores(), 8) if size in ("tiny", "smoke") else 1
    with watchdog(patience, f"what was finished is in {out}, and the same command goes on from there"):
        code = write_atlas(
            size=size, strict=strict, out=out, folder=folder, perturb=perturb, records=records,
            slices=not no_slices, **chosen,
        )  # fmt: skip
    sys.exit(code)


@main.group()
def new():
    """Begin something new."""


@new.command("claim")
@click.argument("name")
@click.option("--in", "folder", default=".", help="Folder to write it to.")
def new_claim(name, folder):
    """Write NAME.py, a claim that runs, to be changed into another theorem."""
    from featlab.claims.skeleton import write_skeleton

    path = write_skeleton(name, folder)
    click.echo(f"{path}; verify it with: featlab verify {name} --claims {folder}")


@main.command()
@click.argument("ids", nargs=-1, required=True)
@_claims_option
def cite(ids, folder):
    """Print the BibTeX of claims."""
    from featlab.commands.claims import cite

    cite(ids, folder=folder)


@main.command()
@click.argument("file", metavar="FILE|ID")
@click.argument("changes", nargs=-1, metavar="[data.snr=0.2 ...]")
@click.option("--seeds", default=None, type=click.IntRange(min=1), help="How many seeds to train.")
@click.option("--out", default=None, help="Folder for results and figures; out/NAME if not given.")
def run(file, changes, seeds, out):
    """Train the experiment of FILE (TOML) or of a claim, with changes; write its results and figures."""
    from featlab.commands.run import run_file

    sys.exit(run_file(file, changes, seeds=seeds, out=out))


# What sweeping and comparing on a grid have in common.
_grid = click.option("--grid", multiple=True, metavar="data.n=20:200:8log", help="An axis: a range, or a,b,c.")
_near = click.option("--near", default=None, metavar="test_error=0.25", help="Compute only cells near this level.")
_cluster = click.option("--cluster", default=None, metavar="ADDRESS|local", help="A dask scheduler, or its file.")


@main.command()
@click.argument("file", metavar="FILE|ID")
@click.argument("changes", nargs=-1, metavar="[data.d=1e6 ...]")
@_grid
@click.option("--seeds", default=None, type=click.IntRange(min=1), help="How many seeds in each cell.")
@click.option("--out", default=None, help="Folder to keep it in, and to go on from; out/NAME if not given.")
@_near
@click.option("--show", default=None, metavar="VARIABLE", help="What the figure shows.")
@_cluster
def sweep(file, changes, grid, seeds, out, near, show, cluster):
    """Train the experiment of FILE (TOML) or of a claim in every cell of a grid; the same command resumes."""
    from featlab.commands.sweep import sweep_file

    options = {"grid": grid, "seeds": seeds, "out": out, "near": near, "show": show, "cluster": cluster}
    sys.exit(sweep_file(file, changes, **options))


@main.command()
@click.argument("file", metavar="FILE|ID")
@click.argument("words", nargs=-1, metavar='["SAM(0.1, radius=0.05)" "slow: Adam(1e-4)" ...] [data.n=50 ...]')
@_grid
@click.option("--seeds", default=None, type=click.IntRange(min=1), help="How many seeds, the same for each.")
@click.option("--out", default=None, help="Folder for results and figures; out/NAME-compare if not given.")
@_near
@click.option("--show", multiple=True, metavar="VARIABLE", help="What the figure shows; without a grid, several.")
@click.option("--level", default=None, type=float, help="The contour that is drawn in the phase diagrams.")
@_cluster
def compare(file, words, grid, seeds, out, near, show, level, cluster):
    """Train one experiment with several algorithms, side by side: curves, or with a grid phase diagrams."""
    from featlab.commands.compare import compare_file

    options = {"grid": grid, "seeds": seeds, "out": out, "near": near, "show": show, "level": level}
    sys.exit(compare_file(file, words, cluster=cluster, **options))


@main.command()
@click.argument("file", metavar="FILE.py")
@click.option("--samples", default=None, type=click.IntRange(min=2), help="Inputs that gradients are taken of.")
@click.option("--out", default=None, help="Folder for the table, the figure and the JSON record.")
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON, and nothing else.")
def meter(file, samples, out, as_json):
    """Meter a network: lazy or rich, learnt or memorised.

    FILE.py is run, and must define apply, params_before, params_after, inputs and labels; it may define
    clean_labels, batched, features, weights and samples.
    """
    from featlab.commands.meter import meter_file

    sys.exit(meter_file(file, samples=samples, out=out, as_json=as_json))


@main.command()
@click.option(
    "--port", default=8123, type=click.IntRange(0, 65535), show_default=True, help="0: any that is free."
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen at; loopback unless told."
)
@_claims_option
def serve(port, host, folder):
    """The playground: choose a theorem in the browser, move its numbers, watch it train."""
    from featlab.web import serve

    serve(port, host, folder)
