"""What `featlab new claim NAME` writes: a claim that runs, to be changed into another theorem."""

from __future__ import annotations

import keyword
from pathlib import Path

from featlab.core.validation import InputError


def write_skeleton(name: str, folder: str | Path = ".") -> Path:
    """Write NAME.py, a complete claim, and return its path."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_") or len(name) > 80:
        raise InputError(f"A claim's name must be a Python name such as cao2022_phase, got {name!r}.")
    if (Path(__file__).parent / "theorems" / f"{name}.py").exists():
        raise InputError(f"featlab has a claim {name!r} already; choose another name.")
    path = Path(folder) / f"{name}.py"
    if path.exists():
        raise InputError(f"{str(path)!r} exists already; choose another name or remove it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_TEXT.replace("NAME", name))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror}.") from None
    return path


_TEXT = '''r"""NAME: state the theorem here, in words, with its reference and what would refute it.

As it stands, this file measures that a ReLU network's training time to a given loss scales as 1 / learning rate.
Verify it with `featlab verify NAME --claims .` and change it, piece by piece, into your theorem.
"""

import featlab as fl
from featlab.claims import Assumption, Claim, Size, scales_as


class NAME(Claim):
    """The claim of this file."""

    title = "training time to a given loss scales as 1 / learning rate"  # one plain sentence
    statement = r"T(L_S \\le \\varepsilon) \\sim \\eta^{-1}"  # LaTeX
    refuted_if = "the exponent of the time in the learning rate differs from -1 by more than the margin"
    reference = """@misc{NAME, title = {Title}, author = {Author}, year = {2026}}"""
    sizes = {  # tiny: for tests; smoke: seconds; laptop: a minute on two cores, 22 seeds or more; full: a GPU
        "tiny": Size(seeds=3, rates=(0.2, 0.1, 0.05)),
        "smoke": Size(seeds=4, rates=(0.2, 0.1, 0.05)),
        "laptop": Size(seeds=24, rates=(0.2, 0.1, 0.05, 0.025)),
        "full": Size(seeds=32, rates=(0.2, 0.1, 0.05, 0.025, 0.0125)),
    }
    clauses = {  # what the paper states: the check that judges it, or not_judged("why")
        "T(L_S <= epsilon) ~ 1 / eta": "exponent of the time in the learning rate",
    }
    control_changes = "the loss that was reached is judged, not the time"  # the one ingredient

    # The knobs of the setting. Levels, sizes and margins are fixed before the run that decides.
    width: int = 16
    loss: float = 0.3

    def experiment(self, learning_rate):
        return fl.Experiment(
            data=fl.data.SignalNoise(n=16, d=1e6, snr=0.5, noise_scale=1e-3),
            network=fl.networks.TwoLayerCNN(width=self.width, init_scale=1e-3),
            algorithm=fl.algorithms.GradientDescent(learning_rate),
            probes=[fl.probes.train_loss.on(fl.probes.at_end)],
            steps=fl.probes.until(fl.probes.train_loss, self.loss, at_most=20_000),
        )

    def typical(self):
        return self.experiment(0.1)

    def assumptions(self, experiment):
        return [Assumption("learning rate (small steps)", experiment.algorithm.learning_rate / self.width, "<< 1")]

    def checks(self, lab):
        """Runs that do not reach the loss are left out by the lab, and counted."""
        runs = lab.run(self.experiment, learning_rate=lab.size.rates)
        yield self._law(runs.steps_taken)

    def control(self, lab):
        """Must be refuted by the same judge: here, the loss itself instead of the time."""
        return self._law(lab.run(self.experiment, learning_rate=lab.size.rates).train_loss)

    def _law(self, values):
        name, symbols = "exponent of the time in the learning rate", (r"\\eta", "T")
        return scales_as(name, values, "learning_rate", -1.0, rivals=(-2.0, -0.5), symbols=symbols)
'''
