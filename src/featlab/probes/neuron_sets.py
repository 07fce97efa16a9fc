r"""Which neurons are good, and what they have become: the sets of sparse coding, pure features, right magnitudes.

A neuron is *surely good* for atom $j$ when it is large along $M_j$, with the sign of $w^\star_j$, and small along
all others; *potentially good* when it is not small along $M_j$. Large and small are measured in $\sigma_3^{(t)}$,
the scale of what is random in the weights, which grows with the thresholds:

$$S_{\mathrm{sure},j} = \{i: \langle w_i, M_j \rangle^2 \geq (c_1 + c_2) \sigma_3^2 \log d,\ \
  \langle w_i, M_{j'} \rangle^2 < (c_1 - c_2) \sigma_3^2 \log d\ \forall j' \neq j,\ \
  \langle w_i, M_j \rangle w^\star_j > 0\}$$

$$S_{\mathrm{pot},j} = \{i: \langle w_i, M_j \rangle^2 \geq (c_1 - c_2) \sigma_3^2 \log d\}$$

With thresholds $b = \sigma_3 \sqrt{c_1 \log d}$ a surely good neuron is above them for its own atom alone.
"""

from __future__ import annotations

import jax.numpy as jnp
import xarray as xr

from featlab.algorithms.thresholds import longest
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.data import Dictionary, SparseCoding
from featlab.networks import Neurons, PlainNetwork, SymmetricReLU
from featlab.probes._probe import Variable, View, probe
from featlab.probes.risk import TEST_INPUTS, wrong
from featlab.problem import PlainProblem

C1, C2 = 2.5, 0.2  # c1 - c2 > 2: few neurons are large along two atoms
BIG = 0.5  # of the mean length of the longest tenth: what is shorter has not grown


@probe(
    of=(SparseCoding, SymmetricReLU),
    sees=Sees.VECTORS,
    sure=Variable("neuron atom", r"i \in S_{\mathrm{sure},j}", "surely good neurons of each atom"),
    potential=Variable("neuron atom", r"i \in S_{\mathrm{pot},j}", "potentially good neurons of each atom"),
)
def neuron_sets(view: View, *, c1: float = C1, c2: float = C2):
    """Who is in which set: a number for each pair of a neuron and an atom, so rather for one run than for many."""
    return dict(zip(("sure", "potential"), members(view.params, _dictionary(view), c1, c2)))


@probe(
    of=(SparseCoding, SymmetricReLU),
    sees=Sees.VECTORS,
    sure_count=Variable("", r"|S_{\mathrm{sure}}|", "surely good neurons"),
    potential_count=Variable("", r"\sum_j |S_{\mathrm{pot},j}|", "pairs of an atom and a potentially good neuron"),
    initial_sure=Variable("", r"|S_{\mathrm{sure}}^{(0)}|", "surely good neurons at the start"),
    retention=Variable(
        "",
        r"|S_{\mathrm{sure}}^{(t)} \cap S_{\mathrm{sure}}^{(0)}| / |S_{\mathrm{sure}}^{(0)}|",
        "share of the surely good neurons of the start that are so now, for the same atom; NaN without any",
    ),
    promotion=Variable(
        "",
        r"|S_{\mathrm{sure}}^{(t)} \cap S_{\mathrm{pot}}^{(0)} \setminus S_{\mathrm{sure}}^{(0)}| / "
        r"|S_{\mathrm{sure}}^{(t)} \setminus S_{\mathrm{sure}}^{(0)}|",
        "share of the neurons that became surely good that were potentially good at the start; NaN without any",
    ),
    covered=Variable("", r"P(S_{\mathrm{sure},j} \neq \emptyset)", "share of atoms with a surely good neuron"),
)
def set_counts(view: View, *, c1: float = C1, c2: float = C2):
    """How many neurons are in the sets, and how many of them were at the start."""
    dictionary = _dictionary(view)
    sure, potential = members(view.params, dictionary, c1, c2)
    first, before = members(view.problem.draw.start, dictionary, c1, c2)

    def share(part, whole):
        return jnp.where(jnp.any(whole), jnp.sum(part) / jnp.maximum(jnp.sum(whole), 1), jnp.nan)

    return {
        "sure_count": jnp.sum(sure),
        "potential_count": jnp.sum(potential),
        "initial_sure": jnp.sum(first),
        "retention": share(sure & first, first),
        "promotion": share(sure & before & ~first, sure & ~first),
        "covered": jnp.mean(jnp.any(sure, axis=0).astype(float)),
    }


@probe(
    of=(SparseCoding, SymmetricReLU),
    sees=Sees.VECTORS,
    kept=Variable(
        "",
        r"|S_{\mathrm{sure}}^{(t)} \cap S_{\mathrm{sure}}^{(0)}| / |S_{\mathrm{sure}}^{(0)}|",
        "share of the surely good neurons of the start that are so now",
    ),
)
def sure_kept(view: View, *, c1: float = C1, c2: float = C2):
    """The `retention` of `set_counts` alone, to be followed at every step: `sure_kept.on(throughout)`."""
    dictionary = _dictionary(view)
    sure, first = (members(params, dictionary, c1, c2)[0] for params in (view.params, view.problem.draw.start))
    return jnp.where(jnp.any(first), jnp.sum(sure & first) / jnp.maximum(jnp.sum(first), 1), jnp.nan)


@probe(
    of=(SparseCoding, SymmetricReLU),
    sees=Sees.VECTORS,
    purity=Variable(
        "",
        r"\mathrm{median}_i \max_j |\cos(w_i, M_j)|",
        "cosine of a neuron that has grown with its atom, the median over such neurons",
    ),
    purest=Variable("", r"\max_{i,j} |\cos(w_i, M_j)|", "the largest cosine of a neuron with an atom"),
    grown=Variable("", r"|\{i: \|w_i\| \geq \frac12 \overline{\|w\|}\}|", "neurons that have grown"),
)
def feature_purity(view: View):
    """How pure the features are. A neuron has grown when it has half the mean length of the longest tenth."""
    weights = view.params.weights
    lengths = jnp.linalg.norm(weights, axis=-1)
    products = jnp.max(jnp.abs(weights @ _dictionary(view).atoms.T), axis=-1)
    cosines = products / jnp.where(lengths > 0, lengths, 1)
    grown = lengths >= BIG * longest(weights)
    return {
        "purity": jnp.nanmedian(jnp.where(grown, cosines, jnp.nan)),
        "purest": jnp.max(cosines),
        "grown": jnp.sum(grown),
    }


@probe(
    of=(SparseCoding, SymmetricReLU),
    sees=Sees.VECTORS,
    feature_response=Variable("atom", r"w^\star_j f(M_j)", "output for an atom alone, in the sense of its vote"),
)
def feature_responses(view: View):
    """What the network says to each atom without noise: for right magnitudes the same positive number for all."""
    dictionary = _dictionary(view)
    products = dictionary.atoms @ view.params.weights.T
    return dictionary.votes * view.respond(products[:, None])


@probe(
    of=(SparseCoding,),
    sees=Sees.VECTORS,
    network_error=Variable("", r"P(y f(x) \leq 0)", "test error of the network"),
    linear_error=Variable(
        "", r"P(y \langle M w^\star, x \rangle \leq 0)", "test error of the best linear model, same inputs"
    ),
)
def errors_beside_linear(view: View, *, count: int = TEST_INPUTS):
    """Errors of the network and of the linear model $M w^\\star$ on the same fresh inputs."""
    dictionary, problem = _dictionary(view), view.problem

    def both(params, inputs):
        return jnp.stack([problem.network(params[0], inputs), jnp.sum(inputs @ params[1])])

    pair = PlainNetwork(lambda key, d: None, both)
    params = (view.params, dictionary.votes @ dictionary.atoms)
    outputs, batch = PlainProblem(problem.data, pair, problem.objective, problem.draw).test_outputs(params, count)
    errors = jnp.mean(wrong(batch.labels[:, None] * outputs), axis=0)
    return {"network_error": errors[0], "linear_error": errors[1]}


def members(neurons: Neurons, dictionary: Dictionary, c1: float, c2: float):
    """Surely and potentially good neurons, each with dims (neuron, atom)."""
    products = neurons.weights @ dictionary.atoms.T
    unit = neurons.scale**2 * jnp.log(float(len(dictionary.votes)))
    large, small = products**2 >= (c1 + c2) * unit, products**2 < (c1 - c2) * unit
    others_small = jnp.sum(~small, axis=1, keepdims=True) - ~small == 0
    return large & others_small & (products * dictionary.votes[None] > 0), ~small


def transitions(members: xr.DataArray) -> xr.Dataset:
    """How many pairs of a neuron and an atom `entered` and `left` a set between one recorded step and the next.

    `members` is `sure` or `potential` of a run; the step of a change is the later one.
    """
    if "step" not in members.dims:
        raise InputError("transitions needs a set over time, such as `sure` of a run that records neuron_sets.")
    inside = members.astype(bool)
    before, after = inside.isel(step=slice(None, -1)).drop_vars("step"), inside.isel(step=slice(1, None))
    step = after["step"]
    after = after.drop_vars("step")
    found = xr.Dataset({"entered": after & ~before, "left": before & ~after}).sum(["neuron", "atom"])
    return found.assign_coords(step=step)


def _dictionary(view: View) -> Dictionary:
    truth = view.problem.draw.truth
    assert isinstance(truth, Dictionary)
    return truth
