"""What was computed stays, whatever happens to the process, the disk or the files; the rest is computed."""

import dataclasses
import errno
import math
import os
import shutil
import warnings

import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab.core import source
from featlab.engine import batch as many
from featlab.sweeps import store as stores
from featlab.sweeps import sweep as sweeps
from featlab.sweeps.store import Damaged, Store

P = fl.probes
TINY = fl.Experiment(
    data=fl.data.SignalNoise(n=6, d=math.inf, snr=0.5),
    network=fl.networks.TwoLayerCNN(width=2, init_scale=0.3),
    algorithm=fl.algorithms.GradientDescent(1.0),
    probes=[P.test_error(count=50)],
    steps=5,
)
GRID = {"data.snr": [0.1, 0.5, 2.0], "algorithm.learning_rate": [0.5, 1.0]}
CELLS, UNITS = 6, 3


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    """Two runs a unit, and one program for all tests."""
    monkeypatch.setattr(many, "_TOGETHER", 1)
    monkeypatch.setattr(many, "_BLOCKS", 2)


@pytest.fixture
def counted(monkeypatch):
    """The runs that are computed, and what is to happen after a number of units."""
    seen = {"runs": 0, "units": 0, "then": {}}

    def compute(group, runs, **options):
        if seen["units"] in seen["then"]:
            raise seen["then"][seen["units"]]
        seen["units"] += 1
        seen["runs"] += len(runs.experiments)
        return many.compute(group, runs, **options)

    monkeypatch.setattr(sweeps, "compute", compute)
    return seen


def files(folder):
    """All files of a store, also hidden ones."""
    return sorted(p for p in folder.rglob("*") if p.is_file())


def units_of(folder):
    return sorted((folder / "units").iterdir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished store, and its Dataset."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many, "_TOGETHER", 1)
        patch.setattr(many, "_BLOCKS", 2)
        return folder, fl.sweep(TINY, GRID, out=folder)


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "copy")
    return tmp_path / "copy"


def test_a_finished_sweep_is_read_and_not_computed(whole, copy, counted):
    found = fl.sweep(TINY, GRID, out=copy)
    assert counted["runs"] == 0 and found.identical(whole[1])
    assert len(units_of(copy)) == UNITS and len(files(copy)) == UNITS + 1
    loaded = fl.load(copy)
    assert loaded.identical(whole[1]) and {v: loaded[v].dtype for v in loaded} == {
        v: found[v].dtype for v in found
    }
    assert fl.sweep(TINY, GRID).identical(found) and counted["runs"] == CELLS


def test_after_a_mended_part_all_is_computed_anew_and_said_so(whole, copy, counted, monkeypatch):
    """An edit of code that is not used changes nothing."""
    bare = source.bare_code

    def edit(file):
        monkeypatch.setattr(source, "bare_code", lambda path: bare(path) + "x" * (path == source.PACKAGE / file))
        source._fingerprint.cache_clear()

    edit("probes/agop.py")
    with warnings.catch_warnings(action="error"):
        fl.sweep(TINY, GRID, out=copy)
    assert counted["runs"] == 0
    edit("probes/risk.py")
    with pytest.warns(sweeps.OtherCode, match="is computed anew, and the older one stays"):
        found = fl.sweep(TINY, GRID, out=copy)
    assert counted["runs"] == CELLS and fl.load(copy).drop_attrs().identical(found.drop_attrs())
    source._fingerprint.cache_clear()


@pytest.mark.parametrize(
    "grid, seeds, missing",
    [
        (GRID, 3, 12),
        (GRID, [5, 0], 6),
        ({name: values[::-1] for name, values in reversed(GRID.items())}, 1, 0),
        (GRID | {"data.snr": [0.1, 0.3, 0.5, 1.0, 2.0]}, 1, 4),
        (GRID | {"data.snr": [0.5]}, 2, 2),
        (GRID | {"network.init_scale": [0.3, 0.4]}, 1, 6),
        (GRID | {"data.n": [6, 5]}, 1, 6),
    ],
)
def test_only_what_is_missing_is_computed(grid, seeds, missing, whole, copy, counted):
    if "data.n" in grid:  # another program; its numbers are no matter here
        counted["then"] = {}
        group_of = many.compute

        def fake(group, runs, **options):
            counted["runs"] += len(runs.experiments)
            return {"test_error": np.zeros(len(runs.experiments))}

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sweeps, "compute", fake)
            found = fl.sweep(TINY, grid, seeds, out=copy)
        assert group_of is many.compute
    else:
        found = fl.sweep(TINY, grid, seeds, out=copy)
    assert counted["runs"] == missing and found.done.all()
    shared = whole[1].sel(snr=[s for s in GRID["data.snr"] if s in found.snr])
    again = found.sel(shared.coords)
    again = again.sel(init_scale=0.3) if "init_scale" in again.dims else again
    again = again.sel(n=6) if "n" in again.dims else again
    np.testing.assert_array_equal(again.test_error.transpose(*shared.dims), shared.test_error)


def test_several_sweeps_share_a_folder_and_the_last_is_loaded(copy, counted):
    finer = GRID | {"data.snr": [0.1, 0.5, 1.0, 2.0]}
    second = fl.sweep(TINY, finer, out=copy)
    loaded = fl.load(copy)
    assert loaded.equals(second) and len(loaded.attrs["also_here"].split()) == 1
    first = fl.load(copy / loaded.attrs["also_here"])
    assert first.sizes["snr"] == 3 and first.done.all()
    fl.sweep(TINY, GRID, out=copy)  # begun again, it is the last one
    assert fl.load(copy).sizes["snr"] == 3

    def by_name(rate):
        return dataclasses.replace(TINY, algorithm=fl.algorithms.GradientDescent(rate))

    counted["runs"] = 0
    same = fl.sweep(by_name, {"rate": [0.5, 1.0]}, out=copy)  # other axes, the same runs
    fl.sweep(TINY, {"algorithm.learning_rate": [0.5, 1.0]}, out=copy)
    assert counted["runs"] == 0 and len(list(copy.glob("sweep-*.npz"))) == 4
    assert "learning_rate" in fl.load(copy).dims and "rate" in same.dims


def test_interrupted_it_returns_what_there_is_and_goes_on_where_it_was(tmp_path, whole, counted):
    counted["then"] = {2: KeyboardInterrupt()}
    partial = fl.sweep(TINY, GRID, out=tmp_path)
    assert partial.attrs["interrupted"] == partial.attrs["unfinished"] == 1
    assert partial.done.sum() == 4 and np.isnan(partial.test_error.values[~partial.done.values]).all()
    loaded = fl.load(tmp_path)
    assert loaded.equals(partial) and loaded.attrs["unfinished"] == 1
    assert np.isnan(loaded.steps_taken.values[~loaded.done.values]).all()
    counted["then"] = {}
    rest = fl.sweep(TINY, GRID, out=tmp_path)
    assert counted["runs"] == CELLS and rest.identical(whole[1])
    counted["then"] = {counted["units"]: KeyboardInterrupt()}
    nothing = fl.sweep(TINY, GRID)
    assert nothing.attrs["interrupted"] and not nothing.done.any()
    assert fl.load(tmp_path).identical(whole[1])


def damage_truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_flipped(path):
    content = bytearray(path.read_bytes())
    content[content.index(b"test_error.npy") + 160] ^= 4
    path.write_bytes(content)


def damage_empty(path):
    path.write_bytes(b"")


def damage_garbage(path):
    path.write_bytes(np.random.default_rng(0).bytes(3000))


def damage_folder(path):
    path.unlink()
    path.mkdir()


def damage_exchanged(path):
    path.write_bytes(units_of(path.parent.parent)[-1].read_bytes())


@pytest.mark.parametrize(
    "damage", [value for name, value in list(globals().items()) if name.startswith("damage_")]
)
def test_a_damaged_unit_is_named_and_computed_again(damage, copy, whole, counted):
    unit = units_of(copy)[0]
    damage(unit)
    with pytest.warns(Damaged, match=f"{unit.name}.*counts as not computed"):
        partial = fl.load(copy)
    assert partial.done.sum() == CELLS - 2 and partial.attrs["unfinished"] == 1
    if damage is damage_folder:
        with pytest.warns(Damaged), pytest.raises(fl.InputError, match="cannot be written to"):
            fl.sweep(TINY, GRID, out=copy)
        return
    with pytest.warns(Damaged, match=unit.name):
        found = fl.sweep(TINY, GRID, out=copy)
    assert counted["runs"] == 2 and found.identical(whole[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fl.load(copy).identical(whole[1])  # mended


def test_foreign_and_renamed_files_are_named_and_hidden_ones_left_alone(copy, whole, counted):
    (copy / "units" / "notes.txt").write_text("mine")
    (copy / "units" / ".123-abc.npz").write_bytes(b"half")
    unit = units_of(copy)[-2]
    assert unit.suffix == ".npz"
    unit.rename(copy / "units" / ("0" * 32 + ".npz"))
    with pytest.warns(Damaged) as told:
        found = fl.sweep(TINY, GRID, out=copy)
    text = " ".join(str(warning.message) for warning in told)
    assert "notes.txt" in text and "0" * 32 in text and "abc" not in text and len(told) == 2
    assert counted["runs"] == 2 and found.identical(whole[1])
    assert (copy / "units" / "notes.txt").read_text() == "mine"


def test_no_flipped_bit_changes_a_number(tmp_path):
    """Whatever is flipped: the unit is refused by name, or what it holds is what it held."""
    rng = np.random.default_rng(0)
    addresses = rng.integers(0, 256, (2, 16)).astype(np.uint8)
    values = {"test_error": rng.random(2), "trained": np.array([True, False])}
    path = Store(tmp_path).put(addresses, values)
    content = path.read_bytes()
    refused = 0
    for bit in range(0, 8 * len(content), 7):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            store = Store(tmp_path)
            store.look()
            here, found = store.get(addresses)
        if here.any():
            assert here.all() and all((found[name] == values[name]).all() for name in values)
        else:
            assert any(path.name in str(w.message) for w in told if w.category is Damaged)
            refused += 1
    assert refused > len(content) / 2


def test_get_finds_every_address_wherever_it_is(tmp_path):
    """Also those that end in zeros or are wanted twice."""
    rng = np.random.default_rng(1)
    addresses = np.unique(rng.integers(0, 2, (200, 16)).astype(np.uint8) * rng.integers(0, 2, (200, 1)), axis=0)
    addresses = rng.permutation(addresses).astype(np.uint8)
    assert not addresses[:, -1].all()
    store, numbers = Store(tmp_path), np.arange(len(addresses), dtype=float)
    for part in np.array_split(np.arange(len(addresses)), 7):
        store.put(addresses[part], {"x": numbers[part]})
    wanted = rng.integers(0, len(addresses), 300)
    unknown = np.full((3, 16), 7, np.uint8)
    fresh = Store(tmp_path)
    assert fresh.look() == 7 and fresh.look() == 0
    for one in (store, fresh):
        here, found = one.get(np.concatenate([addresses[wanted], unknown]))
        assert here[:-3].all() and not here[-3:].any() and np.isnan(found["x"][-3:]).all()
        np.testing.assert_array_equal(found["x"][:-3], numbers[wanted])


def test_a_file_in_the_way_is_answered_with_one_sentence(tmp_path, counted):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "units").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "deeper", tmp_path / "store"):
        with pytest.raises(fl.InputError, match="cannot be (read|written to)") as error:
            fl.sweep(TINY, GRID, out=out)
        assert "\n" not in str(error.value)
    assert counted["runs"] == 0 and not [p for p in files(tmp_path) if p.name.startswith(".")]
    with pytest.raises(fl.InputError, match="There are no results in"):
        fl.load(tmp_path / "nothing")


def test_a_full_disk_keeps_what_was_finished(tmp_path, monkeypatch, whole, counted):
    sync, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > 4:  # a file and its folder, for the plan and for each unit
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(fl.InputError, match="cannot be written to .*No space left on device; what was") as error:
        fl.sweep(TINY, GRID, out=tmp_path)
    assert "\n" not in str(error.value)
    assert len(units_of(tmp_path)) == 1 and len(files(tmp_path)) == 2  # nothing hidden
    monkeypatch.setattr(os, "fsync", sync)
    counted["runs"] = 0
    assert fl.sweep(TINY, GRID, out=tmp_path).identical(whole[1]) and counted["runs"] == 4
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).put(np.zeros((1, 16), np.uint8), {})
    assert not [p for p in files(tmp_path) if p.name.startswith(".")]


def test_a_damaged_plan_is_answered_with_one_sentence(copy):
    (plan,) = copy.glob("sweep-*.npz")
    content = plan.read_bytes()
    for damaged in (b"", content[:200], content[:-30], b"garbage" * 40):
        plan.write_bytes(damaged)
        with pytest.raises(fl.InputError, match="is not the plan of a sweep"):
            fl.load(copy)


def test_another_writer_is_listened_to(copy, tmp_path, whole, counted, monkeypatch):
    """Units that come into the folder meanwhile are taken over, and not computed here."""
    ours, theirs = tmp_path / "ours", units_of(copy)

    def watch(dataset):
        for unit in theirs:
            shutil.copy(unit, ours / "units" / unit.name)

    found = fl.sweep(TINY, GRID, out=ours, watch=watch)
    assert counted["units"] == 1 and found.identical(whole[1])


def test_own_units_are_no_news(tmp_path, counted, monkeypatch):
    read = []
    monkeypatch.setattr(Store, "_read", lambda self, path: read.append(path))
    fl.sweep(TINY, GRID, out=tmp_path)
    assert not read and counted["units"] == UNITS


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_export_is_read_back_equal(ending, whole, tmp_path):
    dataset = whole[1].assign_coords(word=("snr", ["relu", "relu_power(3)", "x"]))
    path = fl.export(dataset, tmp_path / f"new/sweep{ending}")
    back = xr.open_dataset(
        path, engine="scipy" if ending == ".nc" else "zarr", **({} if ending == ".nc" else {"consolidated": False})
    )
    for name, values in dataset.variables.items():
        assert (back[name].values == values.values).all() and back[name].dims == values.dims, name
    assert back.attrs["experiment"] == dataset.attrs["experiment"]
    assert back.test_error.attrs["symbol"] == dataset.test_error.attrs["symbol"]
    back.close()
    assert [p.name for p in (tmp_path / "new").iterdir()] == [f"sweep{ending}"]
    if ending == ".zarr":
        with pytest.raises(fl.InputError, match="never writes over a folder"):
            fl.export(dataset, path)


def test_an_export_that_cannot_be_leaves_nothing(whole, tmp_path, monkeypatch):
    with pytest.raises(fl.InputError, match="must end in .zarr or .nc, got 'sweep.csv'"):
        fl.export(whole[1], tmp_path / "sweep.csv")
    (tmp_path / "file").write_text("mine")
    for ending in (".nc", ".zarr"):
        with pytest.raises(fl.InputError, match="cannot be written"):
            fl.export(whole[1], tmp_path / "file" / f"sweep{ending}")

    def full(*paths):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stores.os, "replace", full)
    for ending in (".nc", ".zarr"):
        with pytest.raises(fl.InputError, match="No space left"):
            fl.export(whole[1], tmp_path / f"sweep{ending}")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
