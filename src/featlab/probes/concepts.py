r"""What a transformer learns of concepts and semantics, and how it answers prompts of other laws.

$W_Q$ and $W_K$ learn semantics where $b_k^\top W b_k$ grows and $a_k^\top W a_k$ stays; $W_O$ learns both.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from featlab.core.validation import InputError
from featlab.data import Batch, ConceptPrompts, Concepts
from featlab.data.concepts import answerable
from featlab.networks import ConceptTransformer
from featlab.probes._probe import Variable, View, probe
from featlab.probes.risk import wrong
from featlab.problem import unbatched

TEST_PROMPTS = 4000
LAWS = ("trained", "longer", "mixed", "imbalanced")
LONGER = 4  # times the length of a training prompt
RARER = 0.25  # P(y = 1) where labels are imbalanced
_TEST_NUMBERS = 100_000  # held at a time


@probe(
    of=(ConceptPrompts, ConceptTransformer),
    query_concepts=Variable("concept", r"a_k^\top W_Q a_k", "concept component of the query matrix"),
    query_semantics=Variable("concept", r"b_k^\top W_Q b_k", "semantic component of the query matrix"),
    key_concepts=Variable("concept", r"a_k^\top W_K a_k", "concept component of the key matrix"),
    key_semantics=Variable("concept", r"b_k^\top W_K b_k", "semantic component of the key matrix"),
    output_concepts=Variable(
        "concept", r"\frac1m \sum_i \langle w_{O,i}, c_k \rangle", "concept component of the output neurons"
    ),
    output_semantics=Variable(
        "concept",
        r"\sum_i r_i \langle w_{O,i}, d_k \rangle",
        "semantic component of the output neurons, each with the sign of the label it speaks for",
    ),
)
def concept_components(view: View):
    """Components of the three matrices along concepts and semantics, for each concept."""
    network, truth = _network(view), view.problem.draw.truth
    assert isinstance(truth, Concepts)
    params = view.params
    output = network.output_weights(params)

    def along(rows, matrix):
        return jnp.einsum("ki,ij,kj->k", rows, matrix, rows)

    return {
        "query_concepts": along(truth.input_concepts, params.query),
        "query_semantics": along(truth.input_semantics, params.query),
        "key_concepts": along(truth.input_concepts, params.key),
        "key_semantics": along(truth.input_semantics, params.key),
        "output_concepts": jnp.mean(truth.label_concepts @ output.T, axis=1),
        "output_semantics": jnp.mean(network.signs[None] * (truth.label_semantics @ output.T), axis=1),
    }


@probe(
    of=(ConceptPrompts, ConceptTransformer),
    prompt_error=Variable("law", r"P(y_q f(H) \leq 0)", "error on fresh answerable prompts of a law"),
    prompt_attention=Variable(
        "law",
        r"\sum_{\ell: y_\ell = y_q} s_\ell",
        "attention on demonstrations with the query's label, same prompts",
    ),
)
def prompt_errors(view: View, *, law: tuple[str, ...] = LAWS, count: int = TEST_PROMPTS):
    """Errors and attention on fresh prompts that have a demonstration with the query's label, for each law:

    `trained`, that of the training prompts; `longer`, prompts of four times the length; `mixed`, positive
    mixtures of the concepts; `imbalanced`, a quarter of the labels positive.
    """
    prompts, draw = unbatched(view.problem.data), view.problem.draw
    assert isinstance(prompts, ConceptPrompts)
    columns = draw.truth.input_concepts.shape[1]
    for name in law:
        if name not in LAWS:
            raise InputError(f"prompt_errors(law=) knows {', '.join(LAWS)}, got {name!r}.")

    def read(prompts, positive, mixed):
        prompts = dataclasses.replace(prompts, positive=positive, mixed=mixed)
        chunk = max(1, min(count, _TEST_NUMBERS // ((prompts.length + 1) * 2 * columns)))
        keys = jax.random.split(draw.test_key, -(-count // chunk))
        sums = jax.lax.map(lambda key: _summed(view, prompts.fresh(key, draw.truth, draw.space, chunk)), keys)
        wrong, alike, answered = (jnp.sum(one) for one in sums)
        return wrong / answered, alike / answered

    def read_all(names):
        """Laws of prompts of one length, by one piece of code."""
        length = prompts.length * (LONGER if names == ["longer"] else 1)
        positive = jnp.array([RARER if name == "imbalanced" else prompts.positive for name in names], float)
        mixed = jnp.array([1.0 if name == "mixed" else prompts.mixed for name in names], float)
        same_length = dataclasses.replace(prompts, length=length)
        return dict(zip(names, zip(*jax.lax.map(lambda one: read(same_length, *one), (positive, mixed)))))

    found = {}
    for longer in (False, True):
        names = [name for name in law if (name == "longer") == longer]
        found |= read_all(names) if names else {}
    errors, attention = zip(*(found[name] for name in law))
    return {"prompt_error": jnp.stack(errors), "prompt_attention": jnp.stack(attention)}


def _summed(view: View, batch: Batch):
    """Sums over answerable prompts: errors, attention on demonstrations with the query's label, and how many."""
    network, counts = _network(view), answerable(batch)
    outputs = jax.vmap(network, in_axes=(None, 0))(view.params, batch.inputs)
    shares = jax.vmap(network.attended, in_axes=(None, 0))(view.params, batch.inputs)
    alike = jnp.where(batch.coins == batch.labels[:, None], shares, 0)
    return jnp.sum(jnp.where(counts, wrong(batch.labels * outputs), 0)), jnp.sum(alike), jnp.sum(counts)


def _network(view: View) -> ConceptTransformer:
    network = view.problem.network
    assert isinstance(network, ConceptTransformer)
    return network
