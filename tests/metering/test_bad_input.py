"""What cannot be metered is answered with one sentence."""

import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl

N, D, WIDTH, CLASSES = 13, 5, 7, 3
RANDOM = np.random.default_rng(2)
INPUTS = RANDOM.normal(size=(N, D)).astype(np.float32)
SIGNS = np.where(np.arange(N) < 6, 1.0, -1.0)
DIGITS = np.arange(N) % CLASSES
BEFORE, AFTER = (
    {
        "first": RANDOM.normal(size=(WIDTH, D)).astype(np.float32),
        "last": RANDOM.normal(size=(CLASSES, WIDTH)).astype(np.float32),
    }
    for _ in range(2)
)


def linear(weights, x):
    return weights @ x


def network(params, x):
    return params["last"] @ jnp.tanh(params["first"] @ x)


def many(params, inputs):
    return jnp.tanh(inputs @ params["first"].T) @ params["last"].T


@pytest.mark.parametrize(
    "arguments, options, sentence",
    [
        ((3, BEFORE, AFTER, (INPUTS, DIGITS)), {}, r"meter\(apply=\) must be a function"),
        ((network, BEFORE, {"first": 1.0}, (INPUTS, DIGITS)), {}, "must have the same names and shapes"),
        ((network, {}, {}, (INPUTS, DIGITS)), {}, "must hold arrays of real numbers, and holds none"),
        ((network, BEFORE, AFTER, INPUTS), {}, "data must be"),
        ((network, BEFORE, AFTER, (INPUTS, DIGITS[:4])), {}, "got 13 inputs, 4 labels"),
        ((network, BEFORE, AFTER, (INPUTS, DIGITS + 1)), {}, "labels must be classes, 0 to 2, .* got 3"),
        ((network, BEFORE, AFTER, (INPUTS, DIGITS, SIGNS)), {}, "clean_labels must be classes"),
        (
            (network, BEFORE, AFTER, (INPUTS[:, :4], DIGITS)),
            {},
            "fails for one input of shape .4,.: .*batched=True",
        ),
        ((many, BEFORE, AFTER, (INPUTS[:, None], DIGITS)), {}, r"got \(1, 3\); if it takes many inputs at once"),
        (
            (network, BEFORE, {**AFTER, "last": AFTER["last"] * np.nan}, (INPUTS, DIGITS)),
            {},
            "last of params_after has NaN",
        ),
        ((network, BEFORE, AFTER, (INPUTS * np.inf, DIGITS)), {}, "inputs has NaN or infinity"),
        (
            (network, {**BEFORE, "p": 0.1}, {**AFTER, "p": 0.2}, (INPUTS, DIGITS)),
            {},
            "what trains must be an array",
        ),
        ((network, BEFORE, AFTER, (INPUTS, ["a"] * N)), {}, "labels must be numbers, got <U1"),
        (
            (network, BEFORE, AFTER, ([[1.0], [1.0, 2.0]], [0, 1])),
            {},
            "inputs must be an array of numbers, got list",
        ),
        ((linear, np.zeros(D), np.ones(D), (INPUTS, SIGNS, INPUTS[:, 0])), {}, "clean_labels must be classes"),
        ((lambda w, x: w.size, np.ones(D), np.ones(D), (INPUTS, SIGNS)), {}, "must return real numbers, got int"),
        (
            (network, BEFORE, AFTER, (INPUTS, DIGITS)),
            {"weights": np.ones(3)},
            "a function of parameters, got ndarray",
        ),
        (
            (network, BEFORE, AFTER, (INPUTS, DIGITS)),
            {"weights": lambda p: p["x"]},
            "weights=. fails: KeyError: 'x'",
        ),
        (
            (network, BEFORE, AFTER, (INPUTS, DIGITS)),
            {"features": lambda p, x: p["x"]},
            "features.* fails for one",
        ),
        ((network, BEFORE, AFTER, (INPUTS, DIGITS)), {"samples": 1}, "must be a whole number of at least 2"),
        ((network, BEFORE, AFTER, (INPUTS, DIGITS)), {"features": "x"}, r"meter\(features=\) must be a function"),
        ((network, BEFORE, AFTER, (INPUTS, DIGITS)), {"weights": lambda p: p["last"]}, "a matrix with 5 columns"),
    ],
)
def test_bad_input_is_answered_with_one_sentence(arguments, options, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        fl.meter(*arguments, **options)
