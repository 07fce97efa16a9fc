"""Sparse codes: what the docstring says, on draws; and every dictionary is as good as the identity."""

import dataclasses
import itertools

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

import featlab as fl
from featlab.core.space import Ambient

P = fl.probes
MODEL = fl.data.SparseCoding(n=4000, d=6, sparsity=3, noise_scale=0.0)


def drawn(model, rows=None):
    """The truth and a training set."""

    @eqx.filter_jit
    def draw(key):
        truth, space = model.truth(key, Ambient(float(model.d)))
        return truth, model.draw(key, truth, space, rows or model.n)[0]

    return jax.tree.map(np.asarray, draw(jax.random.key(3)))


def test_codes_have_so_many_atoms_each_set_and_sign_equally_likely():
    truth, batch = drawn(MODEL)
    code = batch.inputs[:, 0] @ truth.atoms.T
    np.testing.assert_array_equal(np.sum(code != 0, axis=1), 3)
    np.testing.assert_array_equal(np.unique(code), [-1, 0, 1])
    sets = list(itertools.combinations(range(6), 3))
    found = [tuple(np.flatnonzero(one)) for one in code]
    assert stats.chisquare([found.count(one) for one in sets]).pvalue > 0.01
    signs = (code[code != 0].reshape(-1, 3) > 0) @ [1, 2, 4]
    assert stats.chisquare(np.bincount(signs, minlength=8)).pvalue > 0.01
    np.testing.assert_array_equal(batch.labels, np.sign(code @ truth.votes))
    assert abs(batch.labels.mean()) < 4 / np.sqrt(4000)
    assert set(np.abs(truth.votes)) == {1.0}


@pytest.mark.slow
def test_noise_is_dense_and_has_the_scale_asked_for_and_a_dictionary_is_orthonormal():
    model = dataclasses.replace(MODEL, n=2000, d=9.0, sparsity=1, noise_scale=0.05, rotated=True)
    truth, batch = drawn(model)
    np.testing.assert_allclose(truth.atoms @ truth.atoms.T, np.eye(9), atol=1e-5)
    assert np.abs(truth.atoms).max() < 0.999
    inside = batch.inputs[:, 0] @ truth.atoms.T
    noise = (inside - np.round(inside)).ravel()
    assert stats.kstest(noise, stats.norm(scale=0.05).cdf).pvalue > 0.01
    assert stats.kstest(noise, stats.norm(scale=0.055).cdf).pvalue < 1e-4


@pytest.mark.slow
def test_every_dictionary_gives_the_numbers_of_the_identity_in_law():
    """Purity and errors after training, over 40 seeds: the same law with M = I and with M of Haar's measure."""

    def read(rotated):
        coding = fl.data.SparseCoding(n=200, d=12, sparsity=3, noise_scale=0.3, rotated=rotated)
        one = fl.Experiment(
            data=fl.data.Stream(data=coding, size=64),
            network=fl.networks.SymmetricReLU(width=40, init_scale=0.02, threshold=2.5),
            algorithm=fl.algorithms.GrowingThresholds(0.1),
            probes=[P.feature_purity, P.errors_beside_linear(count=500)],
            steps=200,
            record=P.every(200),
        )
        return fl.run(one, seeds=40, progress=False).isel(step=-1)

    identity, haar = read(False), read(True)
    for name in ("purity", "network_error", "linear_error"):
        assert stats.ks_2samp(identity[name], haar[name]).pvalue > 0.01
    assert stats.ks_2samp(identity["purity"], haar["purity"] + 0.1).pvalue < 1e-3  # power


def test_what_makes_no_sense_is_refused_in_a_sentence():
    for sparsity in (2, 7):
        with pytest.raises(fl.InputError, match="SparseCoding.sparsity must be odd.* at most d = 6"):
            dataclasses.replace(MODEL, sparsity=sparsity)
    with pytest.raises(fl.InputError, match="needs Ambient"):
        MODEL.truth(jax.random.key(0), fl.Span.create(6.0, 6))
