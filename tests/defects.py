"""Deliberate defects, each of which must make a named test fail: `python tests/defects.py`.

Each defect is put into a copy of the package; the tests it names must pass without it and fail with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Defect(NamedTuple):
    what: str
    file: str
    right: str
    wrong: str
    test: str


REFERENCE = "engine/test_reference.py::test_run_equals_a_plain_numpy_implementation"
PRODUCTS = "problem/test_gram.py::test_training_in_products_gives_the_same_numbers"
STRATEGY = "algorithms/test_strategies.py::test_a_strategy_equals_its_update_in_"
SOBOLEV = "test_a_quadratic_potential_has_its_log_sobolev_constant_and_barthe_and_robertos_bounds_of_it"
FORMULAS = "claims/test_strategy_formulas.py"
DEFECTS = [
    Defect(
        "descent goes uphill",
        "algorithms/descent.py",
        "optax.scale(-self.learning_rate)",
        "optax.scale(self.learning_rate)",
        f"{REFERENCE}[descent-1-span]",
    ),
    Defect(
        "chi_d for chi_{d-s-i}",
        "core/space.py",
        "return dimension - rank - jnp.arange(count)",
        "return dimension + 0.0 * jnp.arange(count)",
        "core/test_law.py::test_span_equals_ambient_in_law[gaussian start]",
    ),
    Defect(
        "the test set is the training set",
        "problem/draw.py",
        "dual, batch_key, test_key, algorithm_key)",
        "dual, batch_key, training_key, algorithm_key)",
        "test_conformance.py::test_data_model[0-SignalNoise]",
    ),
    Defect(
        "all holdouts are one",
        "problem/draw.py",
        "jax.random.fold_in(holdout_key, i)",
        "holdout_key",
        "test_conformance.py::test_data_model[0-SignalNoise]",
    ),
    Defect(
        "the patch carries the flipped label: the factor y y~ is forgotten",
        "data/_data.py",
        "(one)(batch.clean_labels, batch.coins, noise)",
        "(one)(batch.labels, batch.coins, noise)",
        f"{REFERENCE}[descent-1-span]",
    ),
    Defect(
        "padding counts as data",
        "data/_data.py",
        "chosen = self.mask if where is None else self.mask & where",
        "chosen = jnp.ones_like(self.mask) if where is None else where",
        "test_conformance.py::test_objective[0-Supervised]",
    ),
    Defect(
        "orthogonal noise is not made orthogonal",
        "data/_data.py",
        "return truth.directions if self.noise_off() else None",
        "return None",
        "data/test_signal_noise.py::test_noise_is_orthogonal_to_the_signals_or_isotropic",
    ),
    Defect(
        "weight decay grows the weights",
        "algorithms/descent.py",
        "optax.add_decayed_weights(self.weight_decay)",
        "optax.add_decayed_weights(-self.weight_decay)",
        f"{REFERENCE}[weight decay-1-span]",
    ),
    Defect(
        "momentum is dropped",
        "algorithms/descent.py",
        "optax.trace(self.momentum)",
        "optax.trace(0.0 * self.momentum)",
        f"{REFERENCE}[momentum-1-span]",
    ),
    Defect(
        "a stopped run goes on",
        "engine/loop.py",
        "moves = live & finite",
        "moves = finite",
        "engine/test_run.py::test_a_run_stops_at_its_level_and_stays_there",
    ),
    Defect(
        "fresh vectors are drawn without their scale",
        "core/space.py",
        "1 / jnp.sqrt(self.dimension) if unit_norm else 1.0",
        "1.0",
        "core/test_space.py::test_fresh_products_have_the_gram_matrix_of_the_weights",
    ),
    Defect(
        "the class sign of gamma is forgotten",
        "probes/coefficients.py",
        "if model.signed_by_class:",
        "if False:",
        "engine/test_reference.py::test_gamma_and_rho_rebuild_the_weights",
    ),
    Defect(
        "the start is not shrunk in the decomposition",
        "problem/plain.py",
        "alpha = alpha if shrinks and fixed else jnp.ones(())",
        "alpha = jnp.ones(())",
        "engine/test_reference.py::test_the_decomposition_is_exact_and_both_roads_to_it_agree[weight decay]",
    ),
    Defect(
        "a Gaussian stand-in for the uniform start",
        "core/space.py",
        "jax.random.uniform(jax.random.fold_in(key, i), (length,), jnp.float32, -1.0, 1.0)",
        "jax.random.normal(jax.random.fold_in(key, i), (length,), jnp.float32) / math.sqrt(3)",
        "networks/test_two_layer_cnn.py::test_the_uniform_start_is_pytorchs",
    ),
    Defect(
        "the mean over filters is a sum",
        "networks/two_layer_cnn.py",
        "return 1 / self.width if self.average_filters else 1.0",
        "return 1.0",
        "networks/test_two_layer_cnn.py::test_variants_follow_the_formula",
    ),
    Defect(
        "test labels are never flipped",
        "data/signal_noise.py",
        "return self.label_flip if training else self.test_flip",
        "return self.label_flip if training else 0.0",
        "probes/test_risk.py::test_flipped_test_labels_are_a_floor",
    ),
    Defect(
        "a row's draw depends on how many rows there are",
        "core/space.py",
        "return jax.vmap(row)(jnp.arange(count)).astype(float)\n\n\ndef _uniforms",
        "return jax.random.normal(key, (count, length), jnp.float32).astype(float)\n\n\ndef _uniforms",
        "core/test_space.py::test_rows_of_a_stream_do_not_depend_on_how_many_or_how_long_they_are",
    ),
    Defect(
        "a diverged run is passed off as trained",
        "engine/loop.py",
        "jnp.where(live & ~finite, now, carry.diverged_at)",
        "carry.diverged_at",
        "engine/test_run.py::test_divergence_is_reported_and_nothing_is_nan",
    ),
    Defect(
        "noise vectors are taken for orthogonal in products",
        "problem/gram.py",
        "(noise @ noise.T, noise @ directions.T)",
        "(jnp.diag(jnp.sum(noise**2, axis=1)), noise @ directions.T)",
        f"{PRODUCTS}[two noise vectors; uniform start]",
    ),
    Defect(
        "what is learnt of the noise does not move the products with the signals",
        "problem/gram.py",
        "signals = signals + learnt.noise @ with_signals",
        "signals = signals + 0 * learnt.noise @ with_signals",
        f"{PRODUCTS}[exclusive or, oblique; cubed]",
    ),
    Defect(
        "the start is forgotten in products with the noise",
        "problem/gram.py",
        "jax.tree.map(jnp.add, self._gram.start, learnt)",
        "OnBasis(self._gram.start.signals + learnt.signals, learnt.noise)",
        f"{PRODUCTS}[no dimension, exclusive or; leaky, squared loss]",
    ),
    Defect(
        "oblique signals are taken for orthogonal in products",
        "problem/gram.py",
        "learnt.signals @ (directions @ directions.T)",
        "learnt.signals",
        f"{PRODUCTS}[no dimension, exclusive or; leaky, squared loss]",
    ),
    Defect(
        "all runs of a block have the numbers of the first",
        "engine/batch.py",
        "shared_leaves[place] = jnp.asarray(values[slots[..., 0]], kind)",
        "shared_leaves[place] = jnp.asarray(values[0 * slots[..., 0]], kind)",
        "problem/test_gram.py::test_endings_are_where_each_run_ends_alone[None]",
    ),
    Defect(
        "paced descent forgets how large the outputs are",
        "algorithms/paced.py",
        "allowed = jnp.maximum(sizes, jnp.minimum(jnp.max(sizes), 1.0) / 10)",
        "allowed = jnp.ones_like(sizes)",
        "problem/test_gram.py::test_no_output_outruns_the_pace",
    ),
    Defect(
        "padding leaks into the largest magnitude over samples",
        "engine/reduction.py",
        "xp.where(mask.reshape(on_samples), values, 0)",
        "values",
        "sweeps/test_sweep.py::test_padded_sizes_in_families_end_where_each_run_ends_alone[64-1e-09]",
    ),
    Defect(
        "an address forgets the seed",
        "sweeps/keys.py",
        'one.update(seed.to_bytes(4, "little"))',
        'one.update(b"")',
        "sweeps/test_keys.py::test_whatever_changes_a_number_changes_the_address",
    ),
    Defect(
        "code of the user's own is known by its name alone",
        "sweeps/keys.py",
        "{_program_text(program, names)}",
        "{names}",
        "sweeps/test_keys.py::test_code_of_the_users_own_is_known_by_what_it_computes",
    ),
    Defect(
        "a damaged unit is believed",
        "sweeps/store.py",
        "if checksum(content[:-SUM]) != content[-SUM:]:",
        "if False:",
        "sweeps/test_store.py::test_no_flipped_bit_changes_a_number",
    ),
    Defect(
        "SAM looks as far as its gradient is long",
        "algorithms/sam.py",
        "self.radius / jnp.where(length > 0, length, 1)",
        "self.radius",
        f"{STRATEGY}plain_numpy[SAM]",
    ),
    Defect(
        "a gradient's length in products forgets that noise vectors are not orthonormal",
        "problem/gram.py",
        "jax.tree.map(jnp.multiply, gradient.weights, self._products_of(gradient.weights))",
        "jax.tree.map(jnp.multiply, gradient.weights, gradient.weights)",
        f"{STRATEGY}products_on_padded_rows[SAM, then descent]",
    ),
    Defect(
        "the second algorithm begins anew from the start",
        "algorithms/then.py",
        "problem.starting_from(state.params)",
        "problem",
        f"{STRATEGY}plain_numpy[SAM, then descent]",
    ),
    Defect(
        "Adam's mean of squares is a sum",
        "algorithms/adaptive.py",
        "beta2 * v + (1 - beta2) * g**2",
        "beta2 * v + g**2",
        f"{STRATEGY}plain_numpy[Adam]",
    ),
    Defect(
        "mixup mixes the inputs and not the labels",
        "algorithms/noisy.py",
        "one, batch.labels[partner])",
        "one, batch.labels)",
        f"{STRATEGY}a_span_on_padded_rows[mixup]",
    ),
    Defect(
        "padding takes part in mixup",
        "algorithms/noisy.py",
        "jnp.where(batch.mask, lottery, jnp.inf)",
        "lottery",
        f"{STRATEGY}a_span_on_padded_rows[mixup]",
    ),
    Defect(
        "labels are flipped once and for all",
        "algorithms/noisy.py",
        "jax.random.fold_in(key, 1)",
        "jax.random.key(1)",
        "algorithms/test_strategies.py::test_label_noise_flips_as_often_as_asked_and_anew_every_step",
    ),
    Defect(
        "too few steps to the polar factor",
        "algorithms/matrix_normalised.py",
        "(_PULLING,) * 5 + (_CONVERGING,) * 3",
        "(_PULLING,) * 5",
        "algorithms/test_strategies.py::test_a_matrix_normalised_step_is_the_polar_factor",
    ),
    Defect(
        "sparse noise falls on one coordinate twice",
        "data/sparse.py",
        "jnp.where(taken, highest[k], drawn[k])",
        "drawn[k]",
        "data/test_sparse.py::test_noise_has_so_many_coordinates_and_never_the_first",
    ),
    Defect(
        "some sets of coordinates are likelier",
        "data/sparse.py",
        "highest + 1, jnp.int32)",
        "among - count + 1, jnp.int32)",
        "data/test_sparse.py::test_every_set_of_coordinates_is_equally_likely",
    ),
    Defect(
        "flips by class take one class for the other",
        "data/signal_noise.py",
        "flipped = jnp.where(heads, flipped,",
        "flipped = jnp.where(~heads, flipped,",
        "data/test_sparse.py::test_each_class_is_flipped_as_often_as_it_is_told",
    ),
    Defect(
        "what another algorithm did not perturb counts as not switched off",
        "probes/strategy.py",
        "jnp.where(looked & jnp.any(active), off, jnp.nan)",
        "off",
        "probes/test_strategy.py::test_what_sam_switches_off_and_how_alignments_grow",
    ),
    Defect(
        "selection counts padding",
        "probes/label_noise.py",
        "selected = batch.mask & (losses > level)",
        "selected = losses > level",
        "probes/test_label_noise.py::test_probes_of_label_noise_equal_plain_numpy",
    ),
    Defect(
        "a stage's length is compiled in",
        "engine/loop.py",
        "return kind is not None and kind.told",
        "return False",
        "engine/test_compiled.py::test_other_numbers_of_steps_need_no_new_program",
    ),
    Defect(
        "a kept verdict is shown beside a run as large",
        "claims/kept.py",
        'not in SIZES[: SIZES.index(kept["size"])]',
        "not in SIZES",
        "claims/test_kept.py::test_what_was_decided_is_shown_where_it_says_more",
    ),
    Defect(
        "a refuted check counts as consistent",
        "claims/kept.py",
        '{one["status"], two["status"]} == {"supported", "refuted"}',
        "False",
        "claims/test_kept.py::test_a_smaller_run_is_consistent_unless_it_says_the_opposite",
    ),
    Defect(
        "a level ends a run in its first stage",
        "probes/clocks.py",
        "return low & (view.step >= self.after)",
        "return low",
        "probes/test_strategy.py::test_moments_and_ends_are_those_of_a_record_of_every_step",
    ),
    Defect(
        "a surely good neuron may have either sign",
        "theory/sparse_coding.py",
        "return float(_q(high) * (1 - 2 * _q(low)) ** (d - 1))",
        "return float(2 * _q(high) * (1 - 2 * _q(low)) ** (d - 1))",
        "theory/test_sparse_coding.py::test_counts_of_the_start_are_binomial_with_the_closed_form",
    ),
    Defect(
        "thresholds grow as fast as neurons that are awake",
        "algorithms/thresholds.py",
        "HALF = 0.5",
        "HALF = 1.0",
        "algorithms/test_thresholds.py::test_steps_are_those_by_hand[1.2-0.7-True]",
    ),
    Defect(
        "the gradient of a kernel machine forgets its metric",
        "networks/kernel_machine.py",
        "return -(pulls @ params.metric) / self.bandwidth",
        "return -pulls / self.bandwidth",
        "networks/test_kernel_machine.py::test_outputs_and_gradients",
    ),
    Defect(
        "hidden progress counts all neurons alike",
        "probes/progress.py",
        "jax.lax.top_k(moved, min(best, moved.shape[1]))[0]",
        "moved",
        "probes/test_progress.py::test_progress_by_hand",
    ),
    Defect(
        "a decay that grows",
        "algorithms/layerwise.py",
        "* (gradient + getattr(",
        "* (gradient - getattr(",
        "algorithms/test_layerwise.py::test_a_decay_of_one_over_the_rate_leaves_the_gradient_alone",
    ),
    Defect(
        "a layer's rate is its multiplier",
        "networks/mlp.py",
        "(a**2 for a in self.multipliers())",
        "(a for a in self.multipliers())",
        "networks/test_mlp.py::test_the_rates_are_those_of_descent_on_the_weights_themselves[ntk]",
    ),
    Defect(
        "margins compare a label with itself",
        "metering/measures.py",
        "    others[rows, labels] = -np.inf\n",
        "",
        "metering/test_measures.py::test_margins_of_one_output_and_of_several",
    ),
    Defect(
        "untrained runs are not left out",
        "claims/lab.py",
        'runs = runs.drop_vars("trained").map(_as_numbers, keep_attrs=True).where(fine)',
        'runs = runs.drop_vars("trained").map(_as_numbers, keep_attrs=True)',
        "claims/test_lab.py::test_runs_that_did_not_reach_their_loss_are_left_out_and_counted",
    ),
    Defect(
        "what a claim says of training is not heard",
        "claims/lab.py",
        "fine = fine & self._said(said)",
        "fine = fine | self._said(said)",
        "claims/test_lab.py::test_a_claim_says_what_trained_means",
    ),
    Defect(
        "a step that never came is a step",
        "claims/lab.py",
        "return values.astype(float).where(values >= 0)",
        "return values.astype(float)",
        "claims/test_lab.py::test_what_never_happened_has_no_step",
    ),
    Defect(
        "a threshold of untrained runs counts",
        "claims/lab.py",
        "at = np.where(found.trained, found.at, np.nan)",
        "at = found.at",
        "claims/test_lab.py::test_a_boundary_is_labelled_and_remembered_and_knows_what_trained",
    ),
    Defect(
        "programs of two threads run side by side",
        "engine/loop.py",
        "with _one_program, jax.enable_x64",
        "with jax.enable_x64",
        "claims/test_lab.py::test_no_two_programs_of_a_process_run_side_by_side",
    ),
    Defect(
        "missing runs decide through what a claim makes of them",
        "claims/replay.py",
        "samples = np.where(rests, np.nan, check.samples)",
        "samples = check.samples",
        "claims/test_replay.py::test_untrained_runs_decide_nothing_whatever_becomes_of_their_numbers",
    ),
    Defect(
        "numbers made of several seeds pass for independent ones",
        "claims/replay.py",
        "if not check.jackknife and any(moved[:, ~half].any() for half, moved in changed):",
        "if False:",
        "claims/test_replay.py::test_values_by_seed_that_are_made_of_several_seeds_have_no_interval",
    ),
    Defect(
        "a measured bound passes for the theorem's",
        "claims/replay.py",
        "if not all(_same_region(one, check) for _, one in again):",
        "if False:",
        "claims/test_replay.py::test_a_measured_bound_has_an_error_of_its_own",
    ),
    Defect(
        "seeds without a value are dropped in silence",
        "claims/judge.py",
        "if found.min() < TRAINED:",
        "if found.min() <= 0:",
        "claims/test_judge.py::test_runs_without_a_value_decide_nothing[at_most]",
    ),
    Defect(
        "other seeds than the lab's decide",
        "claims/replay.py",
        "doubt = unsure or _other_seeds(check, lab.seeds) or",
        "doubt = unsure or",
        "claims/test_replay.py::test_a_check_has_the_seeds_of_the_lab_and_each_once",
    ),
    Defect(
        "a control judged by another bound decides",
        "claims/verdict.py",
        "if not (self.rival or any(self.control.asks_the_same_as(check) for check in self.checks)):",
        "if False:",
        "claims/test_verify.py::test_a_control_is_judged_as_a_check_is",
    ),
    Defect(
        "few seeds refute",
        "claims/judge.py",
        'doubts = [self._unseen_successes(cell, strict_level) if self.chance else "" for cell in outside]',
        'doubts = ["" for cell in outside]',
        "claims/test_judge.py::test_a_mode_that_would_bring_the_mean_inside_must_have_been_looked_for",
    ),
    Defect(
        "seeds that agree support, however few",
        "claims/judge.py",
        "if unseen(failed[cell], count) <= MISSED:",
        "if not failed[cell]:",
        "claims/test_judge.py::test_the_fewest_seeds_that_can_support_follow_from_the_failures_that_must_show",
    ),
    Defect(
        "a skewed sample has Student's interval",
        "claims/intervals.py",
        "return min(low, end(reach)), max(high, end(-reach))",
        "return low, high",
        "claims/test_judge.py::test_what_is_false_is_supported_no_more_often_than_promised[exponential-300]",
    ),
    Defect(
        "refutation is not corrected for the checks judged together",
        "claims/judge.py",
        "return 1 - (1 - LEVEL) / (judged * len(self.samples))",
        "return LEVEL",
        "claims/test_judge.py::test_more_checks_widen_the_interval_of_refutation_only",
    ),
    Defect(
        "the advice on seeds forgets the level that refutes",
        "claims/judge.py",
        "level = self.deciding_level(judged) if outside else LEVEL",
        "level = LEVEL",
        "claims/test_judge.py::test_as_many_seeds_as_advised_decide[1.3-0.9998]",
    ),
    Defect(
        "drift is looked for in exponents alone",
        "claims/judge.py",
        "if self._allows(now) != self._allows(ahead):",
        "if False:",
        "claims/test_judge.py::test_values_that_drift_towards_an_edge_decide_nothing[at_most]",
    ),
    Defect(
        "a loose bound is evidence",
        "claims/judge.py",
        'return "room to spare" if self._spare() else "evidence"',
        'return "evidence"',
        "claims/test_judge.py::test_a_bound_ten_times_the_measurement_has_room_to_spare",
    ),
    Defect(
        "an identity alone supports a theorem",
        "claims/verdict.py",
        "if not (self.evidence or formulas or self.rival):",
        "if False:",
        "claims/test_verify.py::test_a_verdict_needs_evidence",
    ),
    Defect(
        "a changed claim is decided on the seeds it was seen on",
        "claims/deciding.py",
        'return max([BASE_SEED, *(run["base_seed"] + max(STRIDE, run["seeds"]) for run in runs)])',
        "return BASE_SEED",
        "claims/test_verify.py::test_deciding_runs_are_logged_on_fresh_seeds_and_a_changed_source_is_told",
    ),
    Defect(
        "an output that is no number is a right answer",
        "probes/risk.py",
        "return jnp.where(jnp.isnan(margins), jnp.nan, jnp.where(margins > 0, 0.0, 1.0))",
        "return jnp.where(margins <= 0, 1.0, 0.0)",
        "probes/test_nan.py::test_an_output_that_is_no_number_is_never_a_right_answer",
    ),
    Defect(
        "live readings count padding",
        "engine/stream.py",
        "< experiment.data.n",
        ">= 0",
        "engine/test_stream.py::test_padding_is_no_part_of_what_is_read",
    ),
    Defect(
        "the signal coefficient holds the start",
        "errata/signal_coefficient.py",
        "(run.weights - run.start) @ run.signal",
        "run.weights @ run.signal",
        "errata/test_errata.py::test_the_corrected_formula_holds_and_the_printed_one_does_not[signal_coefficient]",
    ),
    Defect(
        "a quarter of the flip rate is called half of it",
        "errata/label_noise_test_law.py",
        "half = _label_noise.FLIPPED / _label_noise.N",
        "half = 0.5 * _label_noise.FLIPPED / _label_noise.N",
        "errata/test_errata.py::test_a_bound_that_is_attained_is_met",
    ),
    Defect(
        "lengths of rows count half in the gain of a second spike",
        "errata/two_spikes_gain.py",
        "2 * _one_step.COEFFICIENTS[2] ** 2 / SETTING.phi",
        "_one_step.COEFFICIENTS[2] ** 2 / SETTING.phi",
        "errata/test_errata.py::test_the_gains_of_spikes_are_those_of_the_theory",
    ),
    Defect(
        "rows of the gain's features all have length one",
        "errata/_one_step.py",
        "    if unit_rows:\n",
        "    if True:\n",
        "errata/test_errata.py::test_the_corrected_formula_holds_and_the_printed_one_does_not[two_spikes_gain]",
    ),
    Defect(
        "the best power of AGOP counts what all positive matrices share",
        "theory/agop.py",
        "axis=0) - jnp.trace(one) / d",
        "axis=0)",
        "theory/test_agop.py::test_the_best_power_is_the_one_that_was_taken",
    ),
    Defect(
        "the best power of AGOP forgets the trace of the power",
        "theory/agop.py",
        "jnp.sum(powers**2, axis=1) - jnp.sum(powers, axis=1) ** 2 / d",
        "jnp.sum(powers**2, axis=1)",
        "theory/test_agop.py::test_the_best_power_has_the_largest_shape_cosine",
    ),
    Defect(
        "neurons that joined count as kept",
        "probes/neuron_sets.py",
        "jnp.where(jnp.any(first), jnp.sum(sure & first)",
        "jnp.where(jnp.any(first), jnp.sum(sure)",
        "probes/test_neuron_sets.py::test_sets_and_their_counts_are_those_of_the_definitions",
    ),
    Defect(
        "surely good neurons may be large along another atom on one side",
        "theory/sparse_coding.py",
        "(1 - 2 * _q(low)) ** (d - 1)",
        "(1 - _q(low)) ** (d - 1)",
        "theory/test_sparse_coding.py::test_counts_of_the_start_are_binomial_with_the_closed_form",
    ),
    Defect(
        "a denoiser's ratio is n SNR^2, both classes' samples counted",
        "theory/denoising.py",
        "return n * snr**2 / 2",
        "return n * snr**2",
        "theory/test_denoising.py::test_the_first_step_has_half_of_n_snr_squared",
    ),
    Defect(
        "a probe on an encoder reads the largest noise for the mean over samples",
        "probes/contrastive.py",
        "view.training.mean(jnp.max(noise, axis=0))",
        "jnp.max(noise)",
        "probes/test_contrastive.py::test_signal_over_noise_is_that_of_the_view[0]",
    ),
    Defect(
        "rows of a start differ in length half as much as they do",
        "theory/one_step.py",
        "lengths = 2 * activation.second**2 / psi",
        "lengths = activation.second**2 / psi",
        "theory/test_one_step.py::test_two_spikes_on_gaussian_rows_have_the_formula_of_the_page",
    ),
    Defect(
        "the lengths of inputs hide no spike",
        "theory/one_step.py",
        "return math.sqrt(lengths / self.width) * self._factors(length, spikes) * self._moments(k)",
        "return 0.0 * math.sqrt(lengths / self.width) * self._factors(length, spikes) * self._moments(k)",
        "theory/test_one_step.py::test_the_lengths_of_inputs_hide_even_spikes",
    ),
    Defect(
        "the gap to rank one may fall as n^-1/4",
        "claims/theorems/moniri2023_rank_one.py",
        "np.sqrt(runs.n) / np.log(runs.n)",
        "np.sqrt(runs.n) / np.log(runs.n) ** 2",
        "claims/test_one_step_settings.py::test_a_gap_to_rank_one_that_falls_too_slowly_is_refuted",
    ),
    Defect(
        "explicit spikes are weak",
        "claims/settings/spike_gains.py",
        "STRONG = 150.0",
        "STRONG = 5.0",
        "claims/test_one_step_settings.py::test_explicit_spikes_may_pass_for_infinitely_strong",
    ),
    Defect(
        "the waves have a fourth coefficient",
        "claims/settings/one_step.py",
        "math.exp(1.5) / (8 * math.sqrt(2))",
        "math.exp(1.5) / (16 * math.sqrt(2))",
        "claims/test_one_step_settings.py::test_the_waves_have_three_coefficients_and_not_the_next_two",
    ),
    Defect(
        "Gaussian features after a step have no spikes",
        "probes/ridge.py",
        "return gaussian + explicit_spikes(view, batch, spikes) if spikes else gaussian",
        "return gaussian",
        "probes/test_ridge_errors.py::test_equivalent_features_have_the_spikes_of_a_step",
    ),
    Defect(
        "a log-Sobolev constant with 1/2 for e^2",
        "theory/mean_field.py",
        "np.log1p(np.e**2 / tail)",
        "np.log1p(0.5 / tail)",
        f"theory/test_mean_field.py::{SOBOLEV}",
    ),
    Defect(
        "the convexity of a potential without the temperature",
        "theory/mean_field.py",
        "self.cell**2 / self.temperature)",
        "self.cell**2)",
        f"theory/test_mean_field.py::{SOBOLEV}",
    ),
    Defect(
        "the slope towards the teacher has the constant 6",
        "probes/in_context.py",
        "slope_bound = -4 * loss",
        "slope_bound = -6 * loss",
        "claims/test_ridge_settings.py::test_the_bounds_of_the_saddle_are_their_formulas",
    ),
    Defect(
        "the curvature's bound has lost its k",
        "probes/in_context.py",
        "loss**2 / (features * longest**2",
        "loss**2 / (longest**2",
        "claims/test_ridge_settings.py::test_the_bounds_of_the_saddle_are_their_formulas",
    ),
    Defect(
        "label noise of every task is set against the first task's loss",
        "probes/mean_field.py",
        "losses - losses[task]",
        "losses - losses[0]",
        "probes/test_mean_field.py::test_label_noise_of_several_tasks_costs_as_much_as_of_one",
    ),
    Defect(
        "the edge from which on noise is not fitted, without its root",
        "claims/settings/metric.py",
        "(1 + np.sqrt(n / tasks)) ** 2",
        "(1 + n / tasks) ** 2",
        "claims/test_ridge_settings.py::test_the_edge_of_noise_and_a_learnt_decay",
    ),
    Defect(
        "the risk under a metric forgets it in one term",
        "claims/settings/ridge_inputs.py",
        "spectrum * target * metric, axis=1",
        "spectrum * target, axis=1",
        "claims/test_ridge_settings.py::test_exact_risks_are_those_of_the_estimator_written_out",
    ),
    Defect(
        "X of a signal as if it were its square",
        "claims/settings/kou.py",
        "return (strength * d / n) ** 0.25",
        "return (strength * d / n) ** 0.5",
        "claims/test_signal_noise_claims.py::test_the_signal_has_the_strength_that_is_asked_for",
    ),
    Defect(
        "a bound with a constant four times as large",
        "claims/theorems/kou2023_error_decay.py",
        "np.exp(-errors.strength / self.c_2)",
        "np.exp(-errors.strength / (4 * self.c_2))",
        "claims/test_signal_noise_claims.py::test_an_error_is_held_against_its_bound",
    ),
    Defect(
        "the bound on exclusive-or data forgets its constant",
        "claims/theorems/meng2024_xor.py",
        "np.exp(-runs.strength / self.c_2)",
        "np.exp(-runs.strength / self.c_2**2)",
        "claims/test_signal_noise_claims.py::test_the_error_on_exclusive_or_is_held_against_its_bound",
    ),
    Defect(
        "own noise is that of the other class",
        "probes/coefficients.py",
        "own = (view.training.labels[None] == classes) & real",
        "own = (view.training.labels[None] != classes) & real",
        "probes/test_coefficients.py::test_extremes_are_split_by_class_and_leave_padding_out",
    ),
    Defect(
        "the blow-up time without its q - 2",
        "claims/settings/growth.py",
        "return times * (power - 2) * rate * start ** (power - 2)",
        "return times * rate * start ** (power - 2)",
        "claims/test_signal_noise_claims.py::test_times_and_rates_are_those_of_the_equation",
    ),
    Defect(
        "far from the threshold without the root of q",
        "claims/theorems/cao2022_phase.py",
        "return lambda n: (BLOW_UP * factor / n) ** (1 / q)",
        "return lambda n: BLOW_UP * factor / n",
        "claims/test_signal_noise_claims.py::"
        "test_what_is_learnt_far_from_the_threshold_is_held_against_the_loss_and_the_start",
    ),
    Defect(
        "fresh noise attends to the signal",
        "theory/attention.py",
        "return (1 + (tokens - 1) / tokens) / tokens",
        "return (1 + (tokens - 1)) / tokens",
        "theory/test_attention.py::test_new_noise_that_attends_uniformly_leaves_this_share_of_the_output",
    ),
    Defect(
        "one kind of coefficient gives the whole margin",
        "theory/signal_noise.py",
        "return (-np.log(np.expm1(loss)) / 2) **",
        "return (-np.log(np.expm1(loss))) **",
        "theory/test_signal_noise.py::test_at_a_small_loss_something_is_learnt_as_large_as_is_said",
    ),
    Defect(
        "the clock of label noise forgets that squared ReLU has slope 2",
        "claims/settings/label_noise_descent.py",
        "return 2 * self.learning_rate * factor",
        "return self.learning_rate * factor",
        f"{FORMULAS}::test_kappa_is_what_a_step_adds_to_a_noise_product_and_half_of_n_snr_to_the_signals",
    ),
    Defect(
        "a sign step adds the root of the mean square of the noise",
        "claims/settings/sign_descent.py",
        "return sparsity * noise_scale * math.sqrt(2 / math.pi)",
        "return sparsity * noise_scale",
        f"{FORMULAS}::test_paces_and_times_of_sign_descent",
    ),
    Defect(
        "the least test loss has one token attend to the signal",
        "claims/settings/sign_descent.py",
        "math.exp(-4 * time)",
        "math.exp(-2 * time)",
        f"{FORMULAS}::test_the_test_loss_is_least_where_both_tokens_attend_to_the_signal",
    ),
    Defect(
        "the margin of descent is the noise's alone",
        "claims/settings/sign_descent.py",
        "loss ** (1 / (1 + sparsity * noise_scale**2 / n))",
        "loss ** (1 / (sparsity * noise_scale**2 / n))",
        f"{FORMULAS}::test_paces_and_times_of_sign_descent",
    ),
    Defect(
        "concentration without the mean of the noise's response",
        "probes/concentration.py",
        "jnp.maximum(margins - means[::-1], 0)",
        "jnp.maximum(margins, 0)",
        f"{FORMULAS}::test_the_exponent_of_the_bound_on_the_error_equals_plain_numpy",
    ),
    Defect(
        "concentration without the factor 2",
        "probes/concentration.py",
        "room**2 / (2 * spread[::-1])",
        "room**2 / spread[::-1]",
        f"{FORMULAS}::test_the_exponent_of_the_bound_on_the_error_equals_plain_numpy",
    ),
    Defect(
        "SAM's radius does not follow the batch",
        "claims/theorems/chen2023_sam.py",
        "math.sqrt((batch or n) * self.width)",
        "math.sqrt(n * self.width)",
        f"{FORMULAS}::test_sams_radius_follows_the_batch_as_its_root",
    ),
    Defect(
        "all gaps are filled alike",
        "claims/replay.py",
        "_SCATTER = 0.3",
        "_SCATTER = 0.0",
        "claims/test_replay.py::test_careless_code_decides_nothing[a difference of two gaps]",
    ),
    Defect(
        "what the lab says of training undoes the fills",
        "claims/replay.py",
        "assign_coords(fine)",
        "assign_coords({})",
        "claims/test_replay.py::test_where_the_lab_says_what_trained_gaps_are_no_less_gaps",
    ),
    Defect(
        "infinity passes for a number",
        "claims/lab.py",
        "found = found.map(_finite, keep_attrs=True)",
        "pass",
        "claims/test_replay.py::test_careless_code_decides_nothing[one over infinity]",
    ),
    Defect(
        "seeds are parted in two ways only",
        "claims/replay.py",
        "digit = (places >> k ^ places >> (k + len(STRENGTHS))) & 1",
        "digit = places & 1",
        "claims/test_replay.py::test_careless_code_decides_nothing[even seeds averaged]",
    ),
    Defect(
        "what cannot fail is evidence",
        "claims/replay.py",
        "doubt = doubt or (_cannot_fail(",
        "doubt = doubt or (0 and _cannot_fail(",
        "claims/test_replay.py::test_a_square_is_never_negative_and_shows_nothing",
    ),
    Defect(
        "a trend that turns back is not followed",
        "claims/cells.py",
        "found.append(mean_of(upper))",
        "pass",
        "claims/test_judge.py::test_a_trend_that_turns_is_followed_where_it_goes",
    ),
    Defect(
        "a few wild runs refute what is said of nearly every run",
        "claims/judge.py",
        "if by_chance(failed, len(row)) <= 1 - level:",
        "if True:",
        "claims/test_judge.py::test_a_bound_that_most_runs_keep_is_not_refuted_by_a_few_wild_ones",
    ),
    Defect(
        "programs are never forgotten",
        "engine/compiled.py",
        "jax.clear_caches()",
        "pass",
        "engine/test_compiled.py::test_programs_are_forgotten_once_there_are_too_many",
    ),
    Defect(
        "text may name what is Python's",
        "text.py",
        "if package in sys.stdlib_module_names:\n        return False",
        "if package in sys.stdlib_module_names:\n        return True",
        "test_text.py::test_text_names_nothing_of_pythons_or_of_other_packages[os.system]",
    ),
    Defect(
        "a damaged results.nc is believed",
        "sweeps/files.py",
        "if marked and checksum(plain) != total:",
        "if False:",
        "sweeps/test_files.py::test_no_damaged_file_is_read_as_other_numbers",
    ),
    Defect(
        "results of another question are written over",
        "sweeps/files.py",
        "if _question(there) == _question(dataset):",
        "if True:",
        "sweeps/test_files.py::test_results_of_something_else_keep_a_name_of_their_own[seeds]",
    ),
    Defect(
        "what killed writers left stays",
        "sweeps/files.py",
        "if _BEGUN.match(path.name) and",
        "if False and",
        "sweeps/test_files.py::test_beginnings_that_killed_writers_left_are_swept_away",
    ),
    Defect(
        "the code of the loop is no part of a run's key",
        "sweeps/keys.py",
        "{ENGINE, *(name",
        "{*(name",
        "sweeps/test_keys.py::test_a_mended_probe_has_new_addresses_and_a_stranger_none",
    ),
    Defect(
        "a key knows neither JAX nor the device",
        "sweeps/keys.py",
        'f"featlab {code}, JAX {version} on {jax.default_backend()}"',
        'f"featlab {code}"',
        "sweeps/test_keys.py::test_another_jax_or_device_has_other_addresses",
    ),
    Defect(
        "a docstring makes a store old",
        "core/source.py",
        "return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node",
        "return node",
        "sweeps/test_keys.py::test_code_is_followed_to_where_it_is_defined",
    ),
    Defect(
        "new code's name for old code's numbers",
        "core/source.py",
        "if file.stat().st_mtime_ns != _READ.get(file):",
        "if False:",
        "sweeps/test_keys.py::test_code_that_changed_under_a_process_is_not_stored_under_its_name",
    ),
    Defect(
        "failing code is answered with a traceback",
        "engine/blame.py",
        "raise InputError(_sentence(error, experiment)) from None",
        "raise",
        "test_user_code.py::test_code_that_fails_is_answered_with_one_sentence",
    ),
    Defect(
        "what is given twice is taken once",
        "text.py",
        "if names.count(name) > 1:",
        "if False:",
        "test_text.py::test_text_that_makes_nothing_is_answered_in_one_sentence",
    ),
    Defect(
        "a span of any size is asked for",
        "experiment.py",
        "if size**2 > _STORED:",
        "if False:",
        "test_user_code.py::test_what_is_too_large_is_refused_before_anything_is_made",
    ),
    Defect(
        "half a request holds its place",
        "web/_impatient.py",
        "if self.cycle is None and",
        "if False and",
        "web/test_connections.py::test_half_a_request_is_cut_off",
    ),
    Defect(
        "who talks has to make room",
        "web/_server.py",
        "if time.monotonic() - silent.heard < IDLE_SECONDS:",
        "if False:",
        "web/test_connections.py::test_who_is_silent_makes_room_and_nobody_else",
    ),
]


def passes(package: Path, tests: list[str]) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *(f"tests/{t}" for t in tests),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"pytest could not run {tests}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main(only: list[str]) -> int:
    chosen = [d for d in DEFECTS if not only or any(word in d.what for word in only)]
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "src" / "featlab"
        shutil.copytree(ROOT / "src" / "featlab", package)
        if not passes(package, sorted({defect.test for defect in chosen})):
            print("the named tests do not pass without any defect")
            return 1
        missed = 0
        for defect in chosen:
            path = package / defect.file
            text = path.read_text()
            if text.count(defect.right) < 1:
                sys.exit(f"{defect.file} no longer holds {defect.right!r}: bring the list up to date")
            path.write_text(text.replace(defect.right, defect.wrong))
            caught = not passes(package, [defect.test])
            path.write_text(text)
            missed += not caught
            print(f"{'caught' if caught else 'MISSED'}  {defect.what}  ({defect.test})", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} defects caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
