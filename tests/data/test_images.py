"""Digits that come along, image files in their standard formats, and two digits as a data model."""

import gzip
import pickle
import struct
import tarfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient
from featlab.data import DigitPair, cifar10, digits, mnist

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (5, 4, 3), np.uint8)
LABELS = np.array([3, 1, 4, 1, 5], np.uint8)
COLOURS = RANDOM.integers(0, 256, (2, 32, 32, 3), np.uint8)


def test_the_digits_are_those_of_the_source():
    """Counts of the classes, from the source's description, and sums of its file."""
    images = digits()
    assert images.pixels.shape == (1797, 8, 8) and images.pixels.max() == 16
    assert np.bincount(images.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert int(images.pixels.sum(dtype=int)) == 561_718 and images.pixels[0, 0].tolist() == [
        0,
        0,
        5,
        13,
        9,
        1,
        0,
        0,
    ]
    assert not images.pixels.flags.writeable


def test_rows_have_mean_zero_and_variance_one_in_the_set_they_are_measured_by():
    images = digits()
    rows = images.rows()
    assert rows.shape == (1797, 64) and abs(rows.mean()) < 1e-5 and abs(rows.std() - 1) < 1e-5
    part = fl.data.Images(images.pixels[:50], images.labels[:50])
    np.testing.assert_array_equal(part.rows(like=images), rows[:50])
    assert abs(part.rows().mean()) < 1e-5


def idx(array):
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.mark.parametrize("train, part", [(True, "train"), (False, "t10k")])
def test_mnist_reads_its_files_plain_and_packed(tmp_path, train, part):
    (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(PIXELS)))
    (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(LABELS))
    images = mnist(tmp_path, train=train)
    np.testing.assert_array_equal(images.pixels, PIXELS)
    assert images.labels.tolist() == [3, 1, 4, 1, 5]


@pytest.mark.parametrize(
    "name, damage, sentence",
    [
        ("images-idx3", lambda data: data[:-1], "is no idx file of bytes with 3 axes, or not all of one."),
        ("images-idx3", lambda data: b"no idx at all", "is no idx file of bytes with 3 axes"),
        ("labels-idx1", lambda data: idx(LABELS[:4]), "has 5 train images and 4 labels."),
    ],
)
def test_damaged_idx_files_are_named(tmp_path, name, damage, sentence):
    files = {"images-idx3": idx(PIXELS), "labels-idx1": idx(LABELS)}
    for one, data in files.items():
        (tmp_path / f"train-{one}-ubyte").write_bytes(damage(data) if one == name else data)
    with pytest.raises(fl.InputError, match=sentence):
        mnist(tmp_path)


def test_a_packed_file_that_is_cut_off_is_named(tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(PIXELS))[:-9])
    with pytest.raises(fl.InputError, match="cannot be unpacked"):
        mnist(tmp_path)


def batch(colours, labels, protocol):
    data = colours.transpose(0, 3, 1, 2).reshape(len(colours), -1)  # all of red, then green, then blue
    return pickle.dumps({b"data": data, b"labels": labels, b"batch_label": b"a test"}, protocol)


@pytest.mark.parametrize("protocol", [2, 5])
def test_cifar10_reads_its_batches(tmp_path, protocol):
    for i in range(1, 6):
        (tmp_path / f"data_batch_{i}").write_bytes(batch(COLOURS, [i, 2], protocol))
    images = cifar10(tmp_path)
    np.testing.assert_array_equal(images.pixels, np.concatenate([COLOURS] * 5))
    assert images.labels.tolist() == [1, 2, 2, 2, 3, 2, 4, 2, 5, 2]


def test_cifar10_is_found_in_its_folder_and_in_its_archive(tmp_path):
    inside = tmp_path / "cifar-10-batches-py"
    inside.mkdir()
    (inside / "test_batch").write_bytes(batch(COLOURS, [7, 8], 2))
    plain = cifar10(tmp_path, train=False)
    with tarfile.open(tmp_path / "cifar-10-python.tar.gz", "w:gz") as packed:
        packed.add(inside, "cifar-10-batches-py")
    (inside / "test_batch").unlink()
    np.testing.assert_array_equal(cifar10(tmp_path, train=False).pixels, plain.pixels)
    assert plain.labels.tolist() == [7, 8]


def test_a_damaged_archive_is_named(tmp_path):
    inside = tmp_path / "test_batch"
    inside.write_bytes(batch(COLOURS, [7, 8], 2))
    archive = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(inside, "test_batch")
    inside.unlink()
    whole = archive.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"no archive", whole[:40] + bytes(200) + whole[240:]):
        archive.write_bytes(damaged)
        with pytest.raises(fl.InputError, match="cannot be unpacked|is no batch"):
            cifar10(tmp_path, train=False)


class Malicious:
    def __reduce__(self):
        import os

        return os.mkdir, ("obeyed",)


def test_a_pickle_that_asks_for_more_than_arrays_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_batch").write_bytes(pickle.dumps({b"data": Malicious(), b"labels": [1]}))
    with pytest.raises(fl.InputError, match=r"holds arrays alone; this asks for posix.mkdir"):
        cifar10(tmp_path, train=False)
    assert not (tmp_path / "obeyed").exists()


@pytest.mark.parametrize(
    "stored, sentence",
    [
        (b"nothing pickled", "'test_batch' is no batch of CIFAR-10"),
        (pickle.dumps({b"labels": [1]}), "'test_batch' is no batch of CIFAR-10: KeyError: 'data'."),
        (pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": 1}), "must hold images of 3072 bytes"),
        (pickle.dumps({b"data": np.zeros((2, 7), np.uint8), b"labels": [1, 2]}), "must hold images of 3072 bytes"),
    ],
)
def test_damaged_batches_are_named(tmp_path, stored, sentence):
    (tmp_path / "test_batch").write_bytes(stored)
    with pytest.raises(fl.InputError, match=sentence):
        cifar10(tmp_path, train=False)


def test_files_that_are_not_there_are_named(tmp_path):
    with pytest.raises(fl.InputError, match="has no file 'train-images-idx3-ubyte', with or without .gz."):
        mnist(tmp_path)
    with pytest.raises(fl.InputError, match="has no file 'data_batch_1'"):
        cifar10(tmp_path)
    with pytest.raises(fl.InputError, match="nowhere' is not there"):
        mnist(tmp_path / "nowhere")


# ---- two digits


def pictures(batch):
    return {row.tobytes() for row in np.asarray(batch.inputs, np.float32)}


def test_no_image_is_trained_on_and_tested_with():
    model = DigitPair(n=200, label_flip=0.25)

    @jax.jit
    def drawn(key):
        keys = jax.random.split(key, 4)
        truth, space = model.truth(keys[0], Ambient(64.0))
        training, holdout = (model.draw(one, truth, space, 203)[0] for one in keys[1:3])
        return training, holdout, model.fresh(keys[3], truth, space, 500)

    padded, holdout, test = drawn(jax.random.key(5))
    assert np.asarray(padded.mask).tolist() == [True] * 200 + [False] * 3
    training = jax.tree.map(lambda leaf: np.asarray(leaf)[:200], padded)
    assert len(pictures(training)) == 200 and len(pictures(test)) == 357 // 3
    assert not pictures(training) & pictures(test) and not pictures(holdout) & pictures(test)
    # 119 images in turn, 500 times
    counts = np.unique(np.asarray(test.inputs), axis=0, return_counts=True)[1]
    assert set(counts.tolist()) <= {4, 5}
    # labels are what the pictures say, and a quarter of those for training are flipped: 4.1 standard deviations
    labels = {row.tobytes(): label for row, label in zip(digits().rows()[:, None], digits().labels)}
    truths = [{3: 1.0, 8: -1.0}[int(labels[row.tobytes()])] for row in np.asarray(training.inputs, np.float32)]
    assert np.asarray(training.clean_labels).tolist() == truths
    flipped = np.asarray(training.labels != training.clean_labels)
    assert abs(flipped.mean() - 0.25) < 4.1 * (0.25 * 0.75 / 200) ** 0.5
    assert bool(jnp.all(test.labels == test.clean_labels))


@pytest.mark.slow
def test_an_experiment_tells_two_digits_apart():
    experiment = fl.Experiment(
        data=DigitPair(n=150),
        network=fl.networks.TwoLayer(width=32),
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[fl.probes.train_loss, fl.probes.test_error(count=119)],
        steps=200,
    )
    history = fl.run(experiment, seeds=3, progress=False)
    assert (history.train_loss[:, -1] < 0.2).all() and (history.test_error[:, -1] < 0.06).all()
    assert (history.test_error[:, 0] > 0.2).all()


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"a": 11}, "DigitPair.a must be a digit, 0 to 9, got 11."),
        ({"a": 8}, "DigitPair.b must be another digit than a, got 8 twice."),
        ({"n": 239}, "DigitPair.n must be at most 238, as two of three images of a 3 or a 8 are for training"),
        ({"label_flip": 2}, "DigitPair.label_flip must be a probability"),
    ],
)
def test_bad_pairs_are_answered_with_one_sentence(fields, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        DigitPair(**fields)
