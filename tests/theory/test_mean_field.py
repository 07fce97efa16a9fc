"""The density of mean-field Langevin dynamics: closed forms, what every step must keep, and where it ends."""

import dataclasses

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from numpy.testing import assert_allclose

import featlab as fl
from featlab.theory.mean_field import MeanField

GRID = np.linspace(-8, 8, 321)


@pytest.fixture(scope="module")
def field():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(12)
    return MeanField(x, np.sin(x) + 0.1 * rng.standard_normal(12), 0.01, 0.05, 0.08, GRID)


@pytest.fixture(scope="module")
def free():
    """Without labels there is nothing to learn: an Ornstein-Uhlenbeck process."""
    return MeanField([1.0, -0.5], [0.0, 0.0], 0.01, 0.2, 0.3, GRID)


def moments(field, mass):
    mean = mass @ field.grid
    return mean, mass @ (field.grid - mean) ** 2


# ---- Ornstein-Uhlenbeck


def test_without_labels_the_end_is_normal_and_the_rate_that_of_ornstein_and_uhlenbeck(free):
    r, tau = free.confinement, free.temperature
    assert_allclose(moments(free, free.minimiser()), (0, tau / (2 * r)), atol=1e-6)
    assert_allclose(free.spectral_gap(free.potential(free.minimiser())), 2 * r, rtol=1e-3)
    low, high = free.sobolev(free.potential(free.minimiser()))
    assert low < 2 * r / tau < high and high < 20 * low  # alpha = 2 r / tau for a normal law
    assert free.objective(free.minimiser()) == 0


def test_without_labels_a_normal_start_stays_normal_with_known_moments(free):
    r, end = free.confinement, free.temperature / (2 * free.confinement)
    times = np.array([0.5, 1.0, 3.0])
    masses = free.evolve(free.normal(1.5, 0.5), times, 0.002)
    expected = [1.5 * np.exp(-2 * r * times), end + (0.25 - end) * np.exp(-4 * r * times)]
    assert_allclose(np.transpose([moments(free, mass) for mass in masses]), expected, rtol=2e-3)
    # tau times the relative entropy of two normal laws.
    mean, variance = expected
    entropy = (variance / end + mean**2 / end - 1 - np.log(variance / end)) / 2
    assert_allclose([free.gap(mass) for mass in masses], free.temperature * entropy, rtol=5e-3)


# ---- What every step keeps


@pytest.mark.parametrize("step", [0.05, 5.0], ids=["short steps", "long steps"])
def test_mass_stays_one_and_positive_and_the_free_energy_falls(field, step):
    """Whatever the step, and from a start that is as rough as can be."""
    start = np.where(np.arange(len(GRID)) == 200, 1.0, 0.0)
    masses = field.evolve(start, np.arange(1, 13) * step, step)
    assert np.all(masses >= 0) and np.all(masses[1:] > 0)
    assert_allclose(masses.sum(axis=1), 1, rtol=1e-12)
    gaps = [field.gap(mass) for mass in (start, *masses)]
    assert np.all(np.diff(gaps) < 0) and gaps[-1] > 0


def test_a_step_in_a_potential_of_the_beginning_can_raise_the_free_energy(field):
    """Why the potential is that of the end: the same long step with the old one overshoots."""
    mass = field.normal(0.0, 0.1)
    old = field._frozen_step(mass, field.potential(mass), 50.0)
    new = field.evolve(mass, [50.0], 50.0)[0]
    assert field.gap(new) < field.gap(mass) and field.gap(new) < field.gap(old)


def test_half_the_step_changes_little(field):
    one, two = (field.evolve(field.normal(1.0, 0.5), [4.0], step)[0] for step in (0.1, 0.05))
    assert np.abs(one - two).sum() < 0.01
    assert np.abs(one - field.normal(1.0, 0.5)).sum() > 0.1


# ---- The objective and its first variation


def test_the_objective_is_the_least_loss_over_second_layers(field):
    mass, n = field.normal(0.5, 1.0), len(field.labels)
    # a(w) in units in which the penalty is a plain square.
    rows = np.concatenate(
        [field.features.T * np.sqrt(mass) / np.sqrt(n), np.sqrt(field.penalty) * np.eye(len(GRID))]
    )
    target = np.concatenate([field.labels / np.sqrt(n), np.zeros(len(GRID))])
    head = np.linalg.lstsq(rows, target)[0]
    assert_allclose(field.objective(mass), np.sum((target - rows @ head) ** 2), rtol=1e-9)


def test_the_potential_is_the_derivative_of_the_energy(field):
    mass, h = field.normal(0.5, 1.0), 1e-5
    potential = field.potential(mass)
    for cell in (90, 160, 230):
        unit = np.eye(len(GRID))[cell]
        slope = (field.energy(mass + h * (unit - mass)) - field.energy(mass - h * (unit - mass))) / (2 * h)
        assert_allclose(slope, potential[cell] - potential @ mass, rtol=1e-6)


def test_degrees_of_freedom(field):
    mass, n = field.normal(0.0, 1.0), len(field.labels)
    kernel = field.kernel(mass)
    expected = np.trace(kernel @ np.linalg.inv(kernel + n * field.penalty * np.eye(n)))
    assert_allclose(field.degrees_of_freedom(mass), expected, rtol=1e-9)


# ---- The end


def test_the_minimiser_is_its_own_gibbs_law_and_nothing_is_below(field):
    end = field.minimiser()
    assert_allclose(field.gibbs(field.potential(end)), end, atol=1e-11)
    assert_allclose(end, end[::-1], atol=1e-11)  # as even as the objective
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.3):
        other = end * np.exp(size * rng.standard_normal(len(GRID)))
        assert field.gap(other / other.sum()) > 0
    assert field.gap(end) == 0
    late = field.evolve(field.normal(1.0, 0.5), [400.0], 1.0)[0]
    assert np.abs(late - end).sum() < 1e-4


def test_the_spectral_gap_is_that_of_the_generator(field):
    field = dataclasses.replace(field, grid=np.linspace(-8, 8, 81))
    potential = field.potential(field.minimiser())
    right, left = field._rates(potential)
    generator = np.diag(right, -1) + np.diag(left, 1)
    generator -= np.diag(generator.sum(axis=0))
    assert_allclose(generator @ field.gibbs(potential), 0, atol=1e-10)
    values = np.sort(-np.linalg.eigvals(generator).real)
    assert_allclose(field.spectral_gap(potential), values[1], rtol=1e-6)
    low, high = field.sobolev(potential)
    # A log-Sobolev inequality implies one of Poincaré: alpha tau is at most the gap.
    assert low * field.temperature < values[1] and low < high


def test_a_quadratic_potential_has_its_log_sobolev_constant_and_barthe_and_robertos_bounds_of_it(free):
    potential = free.potential(free.minimiser())
    assert_allclose(free.convexity(potential), 2 * free.confinement / free.temperature, rtol=1e-9)
    x = np.linspace(0, 6, 60_001)
    deviation = np.sqrt(free.temperature / (2 * free.confinement))
    tail, density = scipy.stats.norm.sf(x / deviation), scipy.stats.norm.pdf(x / deviation) / deviation
    path = scipy.integrate.cumulative_trapezoid(1 / density, x, initial=0)
    low, high = (np.max(tail * np.log1p(one / tail) * path) for one in (np.e**2, 0.5))
    bounds = free.sobolev(potential)
    assert_allclose(bounds.high, 2 / high, rtol=0.01)
    assert 0.9 / (2 * low) < bounds.low < 1 / (2 * low)  # a cell counts on both sides there, to be safe


# ---- Bad input


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"labels": [1.0]}, "as many labels as inputs"),
        ({"temperature": 0.0}, "MeanField.temperature must be a number above 0"),
        ({"grid": [0.0, 1.0, 3.0]}, "evenly spaced"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(field, change, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        dataclasses.replace(field, **change)


def test_a_start_must_be_a_law_and_times_must_rise(field):
    with pytest.raises(fl.InputError, match="add up to 1"):
        field.evolve(2 * field.normal(0.0, 1.0), [1.0], 0.1)
    with pytest.raises(fl.InputError, match="rising times"):
        field.evolve(field.normal(0.0, 1.0), [1.0, 0.5], 0.1)
