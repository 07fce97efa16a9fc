"""What the page offers is what there is, and a setting comes back as the experiment it describes."""

import dataclasses
import json
import math

import pytest

from featlab.claims import find_claims
from featlab.claims.skeleton import write_skeleton
from featlab.core.validation import InputError
from featlab.engine.program import programs_of
from featlab.text import changed
from featlab.web._catalogue import LIMITS, Catalogue
from featlab.web._fields import plain_symbol
from featlab.web._jobs import NEAR, _affordable, side

CATALOGUE = Catalogue()
CLAIMS = find_claims()
PICTURED = [name for name, claim in CLAIMS.items() if claim.picture() is not None]


@pytest.mark.parametrize("name", CLAIMS)
def test_a_theorems_setting_is_its_scene(name):
    setting, scene = json.loads(json.dumps(CATALOGUE.setting(name))), CATALOGUE.scenes[name]
    read = CATALOGUE.read(setting).experiment
    if scene.last_step > LIMITS["steps"]:
        scene = dataclasses.replace(scene, steps=LIMITS["steps"])
    assert read == scene
    as_text = {key: str(value) for key, value in setting.items()}  # as an address carries it
    assert CATALOGUE.read(as_text).experiment == scene
    _affordable(programs_of([read]), CATALOGUE.read(setting).seeds)  # else the page would begin with a refusal
    said = json.loads(json.dumps(side(CATALOGUE.read(setting)), allow_nan=False))
    assert said["sentence"] and len(said["assumptions"]) == len(CLAIMS[name].assumptions(scene))


@pytest.mark.parametrize("name", PICTURED)
def test_a_picture_has_both_sides_of_its_boundary(name):
    claim = CLAIMS[name]
    picture, scene = claim.picture(), claim.scene()
    numbers = [picture.number(changed(scene, {picture.slider: value})) for value in picture.values]
    assert numbers == sorted(numbers) and numbers[0] < 1 / NEAR and numbers[-1] > NEAR
    assert picture.shows in {variable for probe in scene.probes for variable, _ in probe.variables}
    middle = changed(scene, {picture.across: picture.across_values[0], picture.slider: picture.values[0]})
    assert math.isfinite(picture.number(middle))
    for value, sentence in ((picture.values[0], picture.below), (picture.values[-1], picture.above)):
        setting = {**CATALOGUE.setting(name), picture.slider: value}
        message = side(CATALOGUE.read(setting))
        assert sentence in message["sentence"] and message["symbol"] == plain_symbol(picture.symbol)
        assert "\\" not in message["symbol"] and message["assumptions"]


def test_it_says_when_a_setting_is_outside_the_theorem():
    setting = {**CATALOGUE.setting("kou2023_phase"), "data.d": 1000}
    message = side(CATALOGUE.read(setting))
    assert "Outside the theorem's assumptions: n^2 / d" in message["sentence"]


def test_sliders_hold_the_values_they_begin_with():
    page = CATALOGUE.page()
    for kinds in page["kinds"].values():
        for kind in kinds.values():
            for field in kind["fields"]:
                if isinstance(field["value"], float | int) and field["kind"] != "flag":
                    assert field["low"] <= field["value"] <= field["high"], field
                    assert field["low"] < field["high"] and (not field["log"] or field["low"] > 0)
    assert next(iter(page["claims"]))["id"] in PICTURED and len(page["claims"]) == len(CLAIMS)
    fields = {field["name"]: field for field in page["kinds"]["data"]["SignalNoise"]["fields"]}
    assert fields["d"]["high"] == 1e9


def test_a_claim_of_the_users_own_is_offered(tmp_path):
    write_skeleton("mine", tmp_path)
    catalogue = Catalogue(tmp_path)
    entry = next(one for one in catalogue.page()["claims"] if one["id"] == "mine")
    assert catalogue.read(entry["setting"]).claim is catalogue.claims["mine"]


@pytest.mark.parametrize(
    "setting, complaint",
    [
        ({"claim": "cao"}, "no theorem 'cao'"),
        ({"data": "Signal"}, "did you mean 'SignalNoise'"),
        ({"data.n": 3.5}, "data.n must be a whole number"),
        ({"data.n": 10_000}, "n is at most 4096 here"),
        ({"data.m": 3}, "SignalNoise has no field 'data.m'"),
        ({"data.label_flip": 2}, "label_flip must be a probability"),
        ({"data.snr": "nan"}, "data.snr must be a number, got nan"),
        ({"network.activation": "exec"}, "no network.activation 'exec'"),
        ({"network.bias": "perhaps"}, "network.bias must be true or false"),
        ({"algorithm": "Adam", "data.d": 1e9}, "Ambient would store"),
        ({"steps": 10**9}, "steps must be from 0 to 20000"),
        ({"seeds": 0}, "seeds must be from 1 to 16"),
        ({"stpes": 3}, "did you mean 'steps'"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_answered_in_one_sentence(setting, complaint):
    with pytest.raises(InputError, match=complaint.replace("(", r"\(")):
        CATALOGUE.read(setting)


def test_parts_can_be_combined_that_no_theorem_combines():
    setting = {"data": "XorSignalNoise", "algorithm": "SAM", "objective": "squared", "network.activation": "tanh"}
    made = CATALOGUE.read({**setting, "network.width": 8, "steps": 77}).experiment
    names = [type(part).__name__ for part in (made.data, made.network, made.algorithm)]
    assert names == ["XorSignalNoise", "TwoLayerCNN", "SAM"] and made.network.width == 8 and made.last_step == 77
