"""Files of results: what is read is what was written, or nothing is."""

import os

import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab.sweeps.files import read, save, set_aside, writable, write_whole
from featlab.sweeps.store import Damaged, Store

RESULTS = xr.Dataset(
    {
        "loss": (("seed", "step"), np.linspace(0.1, 1.0, 12).reshape(2, 6)),
        "status": ("seed", np.array(["a", "b"])),
    },
    {"seed": [3, 4], "step": np.arange(6)},
    {"experiment": "Experiment(...)", "interrupted": 0},
)


def damaged(whole, rng):
    """What a disk, a power cut or a bad line may make of a file."""
    content, place = bytearray(whole), int(rng.integers(len(whole)))
    match rng.integers(5):
        case 0:
            content[place] ^= 1 << int(rng.integers(8))
        case 1:
            del content[place:]
        case 2:
            content[place:] = bytes(len(content) - place)
        case 3:
            content[place : place + 8] = rng.bytes(len(content[place : place + 8]))
        case 4:
            content += rng.bytes(9)
    return bytes(content)


def test_what_is_saved_is_read_back_and_other_programs_read_it(tmp_path):
    path = save(RESULTS, tmp_path)
    xr.testing.assert_identical(read(path), RESULTS)
    with xr.open_dataset(path, engine="scipy") as by_xarray:
        xr.testing.assert_equal(by_xarray, RESULTS)


def test_no_damaged_file_is_read_as_other_numbers(tmp_path):
    whole = save(RESULTS, tmp_path).read_bytes()
    rng, refused = np.random.default_rng(0), 0
    for _ in range(1000):
        (tmp_path / "damaged.nc").write_bytes(damaged(whole, rng))
        try:
            xr.testing.assert_identical(fl.load(tmp_path / "damaged.nc"), RESULTS)
        except fl.InputError as error:
            assert "damaged.nc" in str(error) and len(str(error)) < 250 + len(str(tmp_path))
            refused += 1
    assert refused > 950


def test_a_file_of_an_older_featlab_is_read(tmp_path):
    write_whole(tmp_path / "results.nc", bytes(RESULTS.to_netcdf(engine="scipy")))
    xr.testing.assert_identical(fl.load(tmp_path), RESULTS)


@pytest.mark.parametrize("change", ["experiment", "seeds", "damage"])
def test_results_of_something_else_keep_a_name_of_their_own(change, tmp_path):
    save(RESULTS, tmp_path)
    assert set_aside(RESULTS, tmp_path) is None
    other = {
        "experiment": RESULTS.assign_attrs(experiment="Experiment(other)"),
        "seeds": RESULTS.assign_coords(seed=[3, 5]),
        "damage": RESULTS,
    }[change]
    if change == "damage":
        (tmp_path / "results.nc").write_bytes(b"nothing")
    before = (tmp_path / "results.nc").read_bytes()
    assert set_aside(other, tmp_path) == tmp_path / "results-1.nc"
    assert (tmp_path / "results-1.nc").read_bytes() == before
    save(other, tmp_path)
    assert set_aside(RESULTS.assign_coords(seed=[7, 8]), tmp_path) == tmp_path / "results-2.nc"


def test_beginnings_that_killed_writers_left_are_swept_away(tmp_path):
    old, new, other = tmp_path / ".99-0123abcd.results.nc", tmp_path / ".98-0123abcd.unit.npz", tmp_path / ".keep"
    for path in (old, new, other):
        path.write_bytes(b"begun")
    for path in (old, other):
        os.utime(path, (0, 0))
    writable(tmp_path)
    assert not old.exists() and new.exists() and other.exists()


def test_a_pipe_among_units_hangs_nobody(tmp_path):
    store = Store(tmp_path)
    store.put(np.zeros((1, 16), np.uint8), {"loss": np.ones(1)})
    os.mkfifo(tmp_path / "units" / "pipe.npz")
    with pytest.warns(Damaged, match="pipe.npz"):
        assert Store(tmp_path).look() == 1
