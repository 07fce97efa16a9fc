"""The meter against closed forms, dense Jacobians, PyTorch, and the theory of lazy training."""

import json
import re
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import featlab as fl
from featlab.metering import _meter, beside
from featlab.metering.reading import judged, printed

N, D, WIDTH, CLASSES = 13, 5, 7, 3
RANDOM = np.random.default_rng(1)
INPUTS = RANDOM.normal(size=(N, D)).astype(np.float32)
SIGNS = np.where(RANDOM.random(N) < 0.5, 1.0, -1.0)
DIGITS = RANDOM.integers(0, CLASSES, N)
BEFORE, AFTER = (
    {
        "first": (scale * RANDOM.normal(size=(WIDTH, D))).astype(np.float32),
        "last": (scale * RANDOM.normal(size=(CLASSES, WIDTH))).astype(np.float32),
    }
    for scale in (0.5, 0.6)
)


def linear(weights, x):
    return weights @ x


def quadratic(weights, x):
    return (weights @ x) ** 2 / 2


def hidden(params, x):
    return jnp.tanh(params["first"] @ x)


def network(params, x):
    return params["last"] @ hidden(params, x)


@pytest.fixture(scope="module")
def reading():
    return fl.meter(network, BEFORE, AFTER, (INPUTS, DIGITS), features=hidden)


def test_a_linear_function_is_lazy_however_far_it_moves():
    """Its linearisation is itself, its kernel the inputs' Gram matrix, its AGOP ww' and so of rank 1."""
    before, after = RANDOM.normal(size=(2, D)).astype(np.float32)
    read = fl.meter(linear, before, after, (INPUTS, SIGNS), weights=lambda w: w[None])
    assert read.regime == "lazy" and read["linear_departure"] < 1e-5 and read["kernel_movement"] < 1e-6
    assert_allclose(read["total_movement"], np.linalg.norm(after - before) / np.linalg.norm(before), rtol=1e-5)
    gram = INPUTS @ INPUTS.T
    assert_allclose(read["kernel_alignment"], SIGNS @ gram @ SIGNS / np.linalg.norm(gram) / N, rtol=1e-5)
    assert_allclose([read["agop_correlation"], read["agop_rank"]], 1, rtol=1e-5)
    assert_allclose(read.margins.after, SIGNS * (INPUTS @ after), rtol=1e-4, atol=1e-5)


def test_a_quadratic_function_departs_by_its_second_order():
    """f - f_0 - J_0 (w - w_0) = <w - w_0, x>^2 / 2 and K = <w, x_i> <w, x_j> <x_i, x_j>."""
    before, after = RANDOM.normal(size=(2, D)).astype(np.float32)
    read = fl.meter(quadratic, before, after, (INPUTS, SIGNS))
    change = (INPUTS @ after) ** 2 / 2 - (INPUTS @ before) ** 2 / 2
    second = (INPUTS @ (after - before)) ** 2 / 2
    assert_allclose(read["linear_departure"], np.linalg.norm(second) / np.linalg.norm(change), rtol=1e-4)
    then, now = (np.outer(INPUTS @ w, INPUTS @ w) * (INPUTS @ INPUTS.T) for w in (before, after))
    assert_allclose(read["kernel_movement"], np.linalg.norm(now - then) / np.linalg.norm(then), rtol=1e-4)
    assert_allclose(
        read["kernel_similarity"], np.sum(now * then) / np.linalg.norm(now) / np.linalg.norm(then), rtol=1e-4
    )
    assert read.regime == "rich"


def dense(params):
    """Every derivative of every output in parameters and inputs, as (sample, output, ...)."""
    flat, unravel = jax.flatten_util.ravel_pytree(jax.tree.map(jnp.asarray, params))
    both = jax.jit(jax.vmap(jax.jacobian(lambda flat, x: network(unravel(flat), x), (0, 1)), in_axes=(None, 0)))
    return [np.asarray(one, np.float64) for one in both(flat, INPUTS)]


def test_kernels_and_gradients_are_those_of_the_dense_jacobian(reading):
    size = np.linalg.norm
    kernels, agops = [], []
    for params in (BEFORE, AFTER):
        by_parameter, by_input = dense(params)
        kernels.append(np.einsum("icp,jcp->ij", by_parameter, by_parameter))
        agops.append(np.einsum("icd,ice->de", by_input, by_input) / N)
    assert_allclose(reading["kernel_movement"], size(kernels[1] - kernels[0]) / size(kernels[0]), rtol=1e-4)
    targets = np.eye(CLASSES)[DIGITS] - 1 / CLASSES
    ideal = targets @ targets.T
    for kernel, found in zip(kernels, (reading.before("kernel_alignment"), reading["kernel_alignment"])):
        assert_allclose(found, np.sum(kernel * ideal) / size(kernel) / size(ideal), rtol=1e-4)
    for agop, params, read in zip(agops, (BEFORE, AFTER), (reading.before, reading.__getitem__)):
        gram = params["first"].T @ params["first"]
        values, vectors = np.linalg.eigh(agop)
        root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
        assert_allclose(read("agop_correlation"), np.sum(agop * gram) / size(agop) / size(gram), rtol=1e-4)
        assert_allclose(read("agop_root_correlation"), np.sum(root * gram) / size(root) / size(gram), rtol=1e-4)
        shares = values / values.sum()
        assert_allclose(read("agop_rank"), np.exp(-np.sum(shares * np.log(shares))), rtol=1e-4)
    moves = [(AFTER[name] - BEFORE[name]).ravel() for name in ("first", "last")]
    jacobian = dense(BEFORE)[0]
    assert_allclose(reading.linear_change, jacobian @ np.concatenate(moves), rtol=1e-3, atol=1e-5)


def test_features_have_their_effective_rank(reading):
    for params, found in ((BEFORE, reading.before("feature_rank")), (AFTER, reading["feature_rank"])):
        features = np.tanh(INPUTS @ params["first"].T)
        shares = np.linalg.svd(features - features.mean(0), compute_uv=False) ** 2
        shares = shares[shares > 1e-9] / shares.sum()
        assert_allclose(found, np.exp(-np.sum(shares * np.log(shares))), rtol=1e-3)


def numbers(read):
    return np.array([[np.nan if row.before is None else row.before, row.after] for row in read.rows])


@pytest.mark.slow
def test_blocks_batches_and_other_trees_give_the_same_numbers(reading, monkeypatch):
    monkeypatch.setattr(_meter, "_NUMBERS", 8 * (WIDTH * D + CLASSES * WIDTH))  # four samples at a time
    blocked = fl.meter(
        network, BEFORE, AFTER, {"inputs": INPUTS, "labels": np.eye(CLASSES)[DIGITS]}, features=hidden
    )
    assert_allclose(numbers(blocked), numbers(reading), rtol=1e-4)
    turned = [
        {"a": params["first"].T, "b": params["last"], "steps": 3, "act": jnp.tanh} for params in (BEFORE, AFTER)
    ]

    def whole(params, inputs):
        assert inputs.ndim == 2 and params["steps"] == 3
        return params["act"](inputs @ params["a"]) @ params["b"].T

    batched = fl.meter(whole, *turned, (INPUTS, DIGITS), batched=True)
    names = {row.name: row for row in reading.rows}
    for row in batched.rows:
        same = names[row.name.replace(" a", " first").replace(" b", " last")]
        assert_allclose(row.after, same.after, rtol=1e-4)


@pytest.mark.slow
def test_an_equinox_module_and_a_batch_of_featlab_are_metered():
    before, after = (eqx.nn.MLP(D, "scalar", 4, 1, jnp.tanh, key=jax.random.key(i)) for i in range(2))
    clean = SIGNS * np.where(np.arange(N) < 4, -1, 1)
    padded = [np.concatenate([one, one[:2]]) for one in (INPUTS, SIGNS, clean)]
    batch = fl.data.Batch(*map(jnp.asarray, padded), mask=jnp.arange(N + 2) < N)
    read = fl.meter(lambda module, x: module(x), before, after, batch)
    assert read.inputs == N and read.margins.flipped.tolist() == [True] * 4 + [False] * (N - 4)
    assert_allclose(read.margins.after, SIGNS * np.asarray(jax.vmap(after)(INPUTS)), rtol=1e-4)
    assert "movement of layers.0.weight" in {row.name for row in read.rows}


def test_flipped_labels_count_as_memorised_when_they_are_fitted():
    """Outputs are given: four labels are flipped, of which one is fitted as it was flipped."""
    clean = np.array([1, 1, 1, 1, -1, -1, -1, -1.0])
    labels = clean * np.array([1, 1, 1, 1, -1, -1, -1, -1])
    outputs = np.array([2, 1, 3, -1, 4, -1, -2, -3.0])
    scale = np.arange(1, 9.0)
    data = (np.diag(scale), (labels + 1) / 2, clean)
    read = fl.meter(linear, np.zeros(8), outputs / scale, data, weights=lambda w: w[None])
    assert read["clean_fitted"] == 3 / 4 and read["memorised"] == 1 / 4
    assert_allclose([read["clean_margin"], read["flipped_margin"]], [1.5, -1.5], rtol=1e-6)
    assert read.before("memorised") == 0


def test_clean_labels_have_an_alignment_of_their_own():
    """A linear function's kernel is the Gram matrix, aligned with signs y by y'Gy / |G| n."""
    clean = SIGNS * np.where(np.arange(N) < 4, -1, 1)
    read = fl.meter(linear, np.zeros(D), np.ones(D), (INPUTS, SIGNS, clean))
    gram = INPUTS @ INPUTS.T
    wanted = [signs @ gram @ signs / np.linalg.norm(gram) / N for signs in (SIGNS, clean)]
    assert_allclose([read["kernel_alignment"], read["clean_alignment"]], wanted, rtol=1e-4)
    assert abs(wanted[0] - wanted[1]) > 0.01
    assert "clean_alignment" not in {
        row.name for row in fl.meter(linear, np.zeros(D), np.ones(D), (INPUTS, SIGNS, None)).rows
    }


def test_numbers_to_be_predicted_have_no_margins():
    read = fl.meter(linear, np.zeros(D), np.ones(D), (INPUTS, INPUTS[:, 0]))
    assert read.margins is None and "labels are no classes: no margins" in str(read)


def test_nothing_moved_is_still():
    assert fl.meter(network, BEFORE, BEFORE, (INPUTS, DIGITS), features=hidden).regime == "still"


@pytest.mark.parametrize(
    "departure, kernel, regime",
    [
        (0.1, 0.1, "lazy"),
        (0.11, 0.01, "between"),
        (0.01, 0.49, "between"),
        (0.5, 0.01, "rich"),
        (0.01, 0.5, "rich"),
    ],
)
def test_the_word_follows_from_the_two_numbers(departure, kernel, regime):
    word, sentence = judged(departure, kernel, 1.0, 0.5)
    assert word == regime and f"{100 * departure:.2g} %" in sentence and f"{100 * kernel:.2g} %" in sentence


@pytest.mark.parametrize(
    "value, text", [(0.997, "99.7 %"), (0.1004, "10.04 %"), (0.4996, "49.96 %"), (1.37, "137 %")]
)
def test_no_number_is_rounded_over_a_level(value, text):
    assert f"misses {text} of" in judged(value, 0.01, 1.0, 1.0)[1]


def test_what_has_no_number_is_not_lazy():
    assert "moved by 180 %, mostly in size (cosine 0.994)" in judged(0.4, 1.8, 1.0, 0.9941)[1]
    assert "moved by 180 %, not in size alone (cosine 0.500)" in judged(0.4, 1.8, 1.0, 0.5)[1]
    assert "cosine" not in judged(0.4, 0.2, 1.0, 0.99)[1]
    assert judged(float("inf"), 0.0, 2.0, 1.0)[0] == judged(0.0, float("nan"), 1.0, 0.0)[0] == "rich"
    read = fl.meter(quadratic, np.ones(D), -np.ones(D), (INPUTS, SIGNS))  # f is even: back where it was
    assert (
        read.regime == "rich"
        and np.isinf(read["linear_departure"])
        and "outputs are as at the start" in read.sentence
    )


def test_the_matrix_that_is_compared_is_named():
    square = {name: np.eye(D, dtype=np.float32) for name in "ab"}
    read = fl.meter(lambda params, x: jnp.sum(params["b"] @ params["a"] @ x), square, square, (INPUTS, SIGNS))
    assert "WᵀW, W = a" in str(read) and "W is a; b would fit too" in str(read)


def test_long_inputs_have_no_agop(monkeypatch):
    monkeypatch.setattr(_meter, "_LONGEST", D - 1)
    read = fl.meter(linear, np.zeros(D), np.ones(D), (INPUTS, SIGNS))
    assert not read.spectra and "inputs have 5 coordinates, more than 4: no AGOP" in str(read)


# ---- lazy and rich: f = alpha (h(theta) - h(theta_0)), loss / alpha^2 (Chizat, Oyallon and Bach, 2019)


def scaled(alpha, steps, width=32):
    """A centred two-layer network under a large output scale, and its reading."""
    random = np.random.default_rng(5)
    inputs = random.normal(size=(20, D)).astype(np.float32)
    labels = np.where(inputs[:, 0] * inputs[:, 1] > 0, 1.0, -1.0).astype(np.float32)
    start = {
        "first": jnp.asarray(random.normal(size=(width, D)) / np.sqrt(D), jnp.float32),
        "last": jnp.asarray(random.normal(size=(1, width)) / np.sqrt(width), jnp.float32),
    }

    def apply(params, x):
        return params["alpha"][()] * (network(params, x) - network(params["start"], x))[0]

    def whole(params, alpha):
        fixed = jax.lax.stop_gradient({"alpha": alpha, "start": start})
        return {**params, **fixed}

    @jax.jit
    def trained(params, alpha):
        def loss(params):
            outputs = jax.vmap(apply, in_axes=(None, 0))(whole(params, alpha), inputs)
            return jnp.mean((outputs - labels) ** 2) / 2 / alpha**2

        def step(i, params):
            return jax.tree.map(lambda w, g: w - 0.3 * g, params, jax.grad(loss)(params))

        return jax.lax.fori_loop(0, steps, step, params)

    def output(params, x):
        return apply(whole(params, jnp.float32(alpha)), x)

    return fl.meter(output, start, trained(start, jnp.float32(alpha)), (inputs, labels))


def test_a_large_output_scale_is_lazy_and_a_small_one_rich():
    rich, lazy = scaled(0.3, 400), scaled(100.0, 400)
    assert rich.regime == "rich" and lazy.regime == "lazy"
    for name in ("total_movement", "movement of first", "linear_departure", "kernel_movement"):
        assert lazy[name] < rich[name] / 20, name
    assert rich["kernel_similarity"] < 0.9 < 0.9999 < lazy["kernel_similarity"]
    assert rich["kernel_alignment"] > 1.5 * rich.before("kernel_alignment")
    assert_allclose(lazy["kernel_alignment"], lazy.before("kernel_alignment"), rtol=0.01)


@pytest.mark.slow
def test_movement_falls_like_one_over_the_output_scale():
    """Theorem 2.3 of Chizat, Oyallon and Bach: |theta - theta_0| = O(1 / alpha), and so departure and kernel."""
    scales = np.array([60.0, 120.0, 240.0, 480.0])
    reads = [scaled(alpha, 400) for alpha in scales]
    for name in ("total_movement", "linear_departure", "kernel_movement"):
        slope = np.polyfit(np.log(scales), np.log([read[name] for read in reads]), 1)[0]
        assert_allclose(slope, -1, atol=0.05, err_msg=name)


# ---- how it is shown


def test_a_reading_is_a_table_a_page_and_plain_data(reading):
    text, page, record = str(reading), reading._repr_html_(), reading.record()
    for row in reading.rows:
        assert row.words in text and row.words in page.replace("&#x27;", "'")
    assert reading.sentence in page and reading.regime == record["regime"]
    again = json.loads(json.dumps(record, allow_nan=False))
    assert {row["name"]: row["after"] for row in again["rows"]}["agop_rank"] == reading["agop_rank"]
    assert len(again["margins"]["after"]) == N and again["margins"]["flipped"] is None
    assert "network" in printed(beside({"network": reading, "again": reading}))


def test_what_is_not_there_is_named(reading):
    with pytest.raises(fl.InputError, match="has no 'kernel_movemnt'; did you mean 'kernel_movement'"):
        reading["kernel_movemnt"]


@pytest.mark.slow
def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "meter.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(code, names)
    assert names["reading"].regime in ("rich", "between") and names["reading"]["fitted"] > 0.95
    assert (tmp_path / "meter.png").stat().st_size > 10_000


# ---- PyTorch


TORCH_SPEAKS = [f"ignore::{kind}" for kind in ("FutureWarning", "DeprecationWarning", "UserWarning")]


@pytest.mark.filterwarnings(*TORCH_SPEAKS)
def test_a_pytorch_module_reads_as_the_same_network_in_jax(reading):
    torch = pytest.importorskip("torch")
    before, after = (
        torch.nn.Sequential(
            torch.nn.Linear(D, WIDTH, bias=False), torch.nn.Tanh(), torch.nn.Linear(WIDTH, CLASSES, bias=False)
        )
        for _ in range(2)
    )
    for module, params in ((before, BEFORE), (after, AFTER)):
        module[0].weight.data, module[2].weight.data = (torch.tensor(params[name]) for name in ("first", "last"))
    data = (torch.tensor(INPUTS), torch.tensor(DIGITS))
    read = fl.meter(after, before.state_dict(), after, data, features="1")
    assert [row.words.split(" has")[0] for row in read.rows[1:3]] == ["0.weight", "2.weight"]
    assert_allclose(numbers(read), numbers(reading), rtol=1e-5, atol=1e-6)
    assert_allclose(read.linear_change, reading.linear_change, rtol=1e-4, atol=1e-5)
    assert after.training  # as it was
    with pytest.raises(fl.InputError, match="params_before must be a state_dict of the module"):
        fl.meter(after, {}, after, data)
    with pytest.raises(fl.InputError, match=r"must name a part of the module \(0, 1, 2\), got 'x'"):
        fl.meter(after, before, after, data, features="x")


@pytest.mark.filterwarnings(*TORCH_SPEAKS)
def test_a_pytorch_module_is_left_as_it_was_and_wrong_ones_are_named():
    torch = pytest.importorskip("torch")
    tied = torch.nn.Sequential(torch.nn.Linear(D, D), torch.nn.Dropout(), torch.nn.Linear(D, D))
    tied[2].weight = tied[0].weight
    tied[1].eval()
    read = fl.meter(tied, tied, tied, (INPUTS[:, ::-1], DIGITS))
    assert read.regime == "still" and tied.training and not tied[1].training
    twice = torch.nn.Tanh()
    module = torch.nn.Sequential(torch.nn.Linear(D, CLASSES), twice, twice)
    with pytest.raises(fl.InputError, match="features='1' must be a part that runs once"):
        fl.meter(module, module, module, (INPUTS, DIGITS), features="1")
    with pytest.raises(fl.InputError, match="The module fails for inputs of shape .2, 4."):
        fl.meter(module, module, module, (INPUTS[:, :4], DIGITS))
