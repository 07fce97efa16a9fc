"""The commands about claims: what they print, write and refuse, and the exit codes a script can rely on."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import featlab as fl
from featlab.atlas import records as kept_records
from featlab.claims import find_claims
from featlab.commands import claims as commands
from featlab.commands.cli import main

BUILT_IN = find_claims()
SUPPORTED, REFUTED, BAD_INPUT, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 130
TINY = ("--size", "tiny", "--base-seed", "11")


def call(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def verify(*arguments):
    return call("verify", *arguments, *TINY)


def records(text):
    """What `--json` printed: a list, and nothing that is not JSON."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def refused(*arguments):
    """The one sentence that answers bad input."""
    code, out, err = call(*arguments)
    assert (
        code == BAD_INPUT and out == "" and len(err.strip().splitlines()) == 1 and err.startswith("featlab: ")
    ), err
    assert err.strip()[-1] in ".?"
    return err.strip()


class Computed(list):
    interrupt = ()


@pytest.fixture
def computed(monkeypatch):
    """The ids of the claims that were computed, in order; those in `interrupt` are interrupted instead."""
    seen, real = Computed(), commands.verify

    def counted(claim, **options):
        if claim.id in seen.interrupt:
            raise KeyboardInterrupt
        seen.append(claim.id)
        return real(claim, **options)

    monkeypatch.setattr(commands, "verify", counted)
    return seen


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take longer than these claims."""
    monkeypatch.setattr(kept_records.plots, "verdict", lambda record: record["id"])
    monkeypatch.setattr(kept_records.plots, "save", lambda figure, path: path.write_text(figure))


# ---- verify: exit codes and JSON


@pytest.mark.parametrize(
    "variant, code, word",
    [
        ("supported", SUPPORTED, "SUPPORTED"),
        ("refuted", REFUTED, "REFUTED"),
        ("blind control", INCONCLUSIVE, "INCONCLUSIVE"),
    ],
)
def test_the_exit_code_is_the_verdict(skeleton, variant, code, word):
    folder = skeleton("mine", variant)
    seen, out, err = verify("mine", "--claims", folder)
    assert seen == code and f"mine: {word}" in out and err == ""
    for text in ("exponent of the time", "control: the loss", "small steps"):
        assert text in out
    seen, out, err = verify("mine", "--claims", folder, "--json")
    (record,) = records(out)
    assert seen == code and record["status"] == word.lower() and err == ""


@pytest.mark.slow
def test_a_script_can_read_the_output_and_refuted_beats_inconclusive(skeleton):
    """In a process of its own: nothing but JSON comes out, whatever the compiler has to say."""
    skeleton("first", "blind control")
    skeleton("second", "refuted")
    folder = skeleton("third")
    command = [
        sys.executable,
        "-m",
        "featlab",
        "verify",
        "first",
        "second",
        "third",
        "first",
        "--json",
        *TINY,
    ]
    done = subprocess.run([*command, "--claims", str(folder)], capture_output=True, text=True)
    assert done.returncode == REFUTED, done.stderr
    found = records(done.stdout)
    assert [one["id"] for one in found] == ["first", "second", "third"]  # each once
    assert [one["status"] for one in found] == ["inconclusive", "refuted", "supported"]
    for one in found:
        assert {
            "id", "status", "reason", "size", "seconds", "checks", "control", "assumptions", "seeds", "base_seed",
            "trained_fraction", "setting", "versions",
        } <= set(one)  # fmt: skip
        assert (one["size"], one["seeds"], one["base_seed"]) == ("tiny", 24, 11)
        for check in (*one["checks"], one["control"]):
            assert {"name", "kind", "measured", "low", "high", "expected", "margin", "passed"} <= set(check)


def test_inconclusive_beats_supported(skeleton, computed):
    skeleton("first", "blind control")
    assert verify("first", "second", "--claims", skeleton("second"))[0] == INCONCLUSIVE
    assert computed == ["first", "second"]


def test_all_means_the_users_claims_as_well(skeleton, monkeypatch):
    folder = skeleton()
    monkeypatch.setattr(commands, "find_claims", lambda folder: {"mine": None})  # the built-in ones take a minute
    code, out, _ = verify("--all", "--claims", folder, "--json")
    assert code == SUPPORTED and [record["id"] for record in records(out)] == ["mine"]
    monkeypatch.undo()
    every = commands._jobs((), True, "tiny", None, 11, str(folder), None)
    assert [claim.id for claim, _ in every] == [*BUILT_IN, "mine"]


def test_fewer_than_three_seeds_decide_nothing(skeleton):
    code, out, _ = verify("mine", "--seeds", "1", "--claims", skeleton())
    assert code == INCONCLUSIVE and "three seeds or more are needed" in out


# ---- verify: again


def test_a_verdict_repeats_from_its_own_json(skeleton, tmp_path):
    skeleton("second", "refuted", ("width: int = 16", "width: int = 8"))
    folder, file = skeleton("first"), tmp_path / "records.json"
    code, printed, _ = call(
        "verify", "first", "second", "--claims", folder, "--json", "--size", "tiny", "--base-seed", 77
    )
    file.write_text(printed)
    again, repeated, _ = call("verify", "--again", file, "--claims", folder, "--json")
    assert code == again == REFUTED
    for one, other in zip(records(printed), records(repeated), strict=True):
        assert one["base_seed"] == 77 and one.pop("seconds") > 0 and other.pop("seconds") > 0
        assert one == other


def test_a_changed_setting_is_repeated_too(skeleton, tmp_path):
    """Beside the knobs of the file: those of the record decide."""
    folder, file = skeleton(), tmp_path / "record.json"
    (record,) = records(verify("mine", "--claims", folder, "--json")[1])
    file.write_text(json.dumps({**record, "setting": {"width": "16", "loss": "0.6"}, "seeds": 3}))
    (changed,) = records(call("verify", "--again", file, "--claims", folder, "--json")[1])
    assert changed["setting"]["loss"] == "0.6"
    faster, slower = (one["checks"][0]["points"]["y"][0][0] for one in (changed, record))
    assert faster < slower
    file.write_text(json.dumps([changed]))
    (again,) = records(call("verify", "--again", file, "--claims", folder, "--json")[1])
    assert again["checks"] == changed["checks"] and again["control"] == changed["control"]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "is not JSON"),
        ("no JSON at all", "is not JSON"),
        ("[]", "holds no verdicts"),
        ("{}", "holds no verdicts"),
        ("3", "holds no verdicts"),
        ('[{"id": "mine"}]', "This is not the record of a verdict: 'setting'"),
        ('[{"id": "mine", "setting": 3}]', "This is not the record of a verdict"),
        ('[{"id": ["mine"], "setting": {}}]', "This is not the record of a verdict"),
    ],
)
def test_a_file_that_is_no_record_is_refused(skeleton, tmp_path, text, sentence):
    file = tmp_path / "file.json"
    file.write_text(text)
    assert sentence in refused("verify", "--again", file, "--claims", skeleton())


def test_again_needs_a_file_and_nothing_else(skeleton, tmp_path):
    assert "There is no file" in refused("verify", "--again", tmp_path / "nowhere.json")
    for more in (["cao2022_phase"], ["--all"]):
        assert "give no claims beside it" in refused("verify", *more, "--again", tmp_path / "nowhere.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert "is not JSON" in refused("verify", "--again", tmp_path / "binary.json")


# ---- Claims of one's own


def test_a_folder_of_ones_own_needs_no_other_change(skeleton):
    folder = skeleton()
    (entry,) = [one for one in json.loads(call("claims", "--json", "--claims", folder)[1]) if one["id"] == "mine"]
    assert entry == {
        "id": "mine", "paper": "Author 2026", "title": "training time to a given loss scales as 1 / learning rate",
        "minutes": 1.0,
    }  # fmt: skip
    assert "learning rate (small steps)" in call("show", "mine", "--claims", folder)[1]
    assert call("cite", "mine", "--claims", folder)[1].startswith("@misc{mine,")
    assert verify("mine", "--claims", folder)[0] == SUPPORTED
    (folder / "_helper.py").write_text("raise RuntimeError('files that begin with _ are not claims')")
    assert call("show", "mine", "--claims", folder)[0] == 0


@pytest.mark.parametrize(
    "change, sentence",
    [
        (
            ("\n\nclass mine(Claim)", "\n\nclass Other(Claim):\n    pass\n\n\nclass mine(Claim)"),
            "exactly one Claim, got 2",
        ),
        (("class mine(Claim)", "class mine(dict)"), "exactly one Claim, got 0"),
        (("import featlab as fl", "import featlab as fl\nimport nowhere"), "cannot be read: ModuleNotFoundError"),
        (("import featlab as fl", "import featlab as"), "cannot be read: SyntaxError"),
        (("import featlab as fl", "raise SystemExit(0)"), "cannot be read: SystemExit"),
        (("    title =", "    titel ="), "mine has no title"),
        (("    statement =", "    # statement ="), "mine has no statement"),
        (("    refuted_if =", "    refuted ="), "mine has no refuted_if"),
        (("    control_changes =", "    changes ="), "mine has no control_changes"),
        (('"laptop": Size', '"desktop": Size'), "mine.sizes lacks 'laptop'"),
        (('"""@misc', '"""misc'), "mine.reference must be a BibTeX entry"),
        (("def control(", "def kontrol("), "mine has no control;"),
        (("def assumptions(", "def conditions("), "mine has no assumptions;"),
        (("width: int = 16", "width: int"), "mine needs width, which was not given"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_incomplete_claim_is_refused_in_one_sentence(skeleton, change, sentence):
    folder = skeleton("mine", change)
    for command in (["verify", "mine", *TINY], ["claims"]):
        assert sentence in refused(*command, "--claims", folder)


def test_a_folder_that_is_none_and_names_that_are_taken(skeleton, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "There is no claim file in" in refused("verify", "mine", "--claims", tmp_path / "empty")
    assert "must be a folder with claim files" in refused("verify", "mine", "--claims", tmp_path / "nowhere")
    folder = skeleton()
    (folder / "mine.py").rename(folder / "cao2022_phase.py")
    sentence = refused("verify", "cao2022_phase", "--claims", folder)
    assert "cao2022_phase.py' has the name of a claim there is already; rename the file." in sentence
    assert "featlab has a claim 'cao2022_phase' already" in refused("new", "claim", "cao2022_phase")


def test_a_claim_in_the_name_of_a_module_replaces_none(skeleton):
    import json

    folder = skeleton("json")
    assert call("show", "json", "--claims", folder)[0] == 0
    assert sys.modules["json"] is json


def test_a_claim_that_breaks_is_bad_input_and_not_refuted(skeleton):
    folder = skeleton(
        "mine", ("def checks(self, lab):", "def checks(self, lab):\n        raise ZeroDivisionError('oh')")
    )
    code, out, err = call("verify", "mine", "--claims", folder, "--size", "tiny", "--base-seed", "11", "--json")
    assert code == BAD_INPUT and out == "" and "mine broke while it was verified" in err and "oh" in err


def test_bad_arguments_are_refused(skeleton):
    folder = skeleton()
    mine = ("verify", "mine", "--claims", folder)
    assert "There is no claim 'mien'; did you mean 'mine'?" in refused("verify", "mien", "--claims", folder)
    assert "did you mean 'kou2023_phase'?" in refused("verify", "kou2023_phas")
    assert "the ids of claims, or --all" in refused("verify")
    assert "the ids of claims, or --all" in refused(*mine, "--all")
    sentence = refused(*mine, "--size", "tiny", "--base-seed", 2**31 - 2)
    assert "a whole number from 0 to 2^31 - 1 - seeds, got 2147483646." in sentence
    for arguments in (["--size", "huge"], ["--seeds", "0"], ["--seeds", "few"], ["--base-seed", "-1"]):
        code, out, err = call(*mine, *arguments)
        assert code == BAD_INPUT and out == "" and arguments[0] in err and arguments[1] in err


# ---- verify: records and figures on disk


def test_records_and_figures_are_written(skeleton, tmp_path):
    out = tmp_path / "deep" / "out"
    code, printed, _ = verify("mine", "--claims", skeleton(), "--out", out)
    assert code == SUPPORTED and re.search(r"out/mine\.json, \.svg, \.png", printed.replace("\n", ""))
    assert {path.name for path in out.iterdir()} == {"mine.json", "mine.svg", "mine.png"}
    (record,) = records((out / "mine.json").read_text())
    assert record["id"] == "mine" and record["status"] == "supported"
    assert "<svg" in (out / "mine.svg").read_text() and (out / "mine.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_there_is_not_computed_again(skeleton, tmp_path, computed, no_figures):
    folder, out = skeleton(), tmp_path / "out"
    command = ("mine", "--claims", folder, "--out", out)
    first = verify(*command, "--json")
    second = verify(*command, "--json")
    assert computed == ["mine"] and second == first and first[0] == SUPPORTED
    code, printed, _ = verify(*command)
    assert computed == ["mine"] and code == SUPPORTED and "mine: supported (every interval" in printed
    verify("mine", "--claims", folder)  # without --out nothing is looked up
    assert computed == ["mine"] * 2


@pytest.mark.slow
def test_what_differs_is_computed_again(skeleton, tmp_path, computed, no_figures):
    folder, out = (
        skeleton("mine", ('"smoke": Size(seeds=4, rates=(0.2', '"smoke": Size(seeds=24, rates=(0.8')),
        tmp_path / "out",
    )
    command = ("verify", "mine", "--claims", folder, "--out", out)
    variations = [
        ("--size", "tiny", "--base-seed", 11),
        ("--size", "tiny", "--base-seed", 12),
        ("--size", "smoke", "--base-seed", 12),
        ("--size", "smoke", "--base-seed", 12, "--seeds", 1),
        ("--size", "tiny", "--base-seed", 11),
    ]
    for count, variation in enumerate(variations, 1):
        for _ in range(2):
            call(*command, *variation)
        assert len(computed) == count, variation
    file = out / "mine.json"
    (record,) = records(file.read_text())
    for change in ({"setting": {"width": "8", "loss": "0.5"}}, {"versions": {**record["versions"], "jax": "0.1"}}):
        before = len(computed)
        file.write_text(json.dumps([{**record, **change}]))
        call(*command, *TINY)
        assert len(computed) == before + 1, change


def test_another_text_of_the_claim_is_computed_again(skeleton, tmp_path, computed, no_figures):
    out = tmp_path / "out"
    assert verify("mine", "--claims", skeleton(), "--out", out)[0] == SUPPORTED
    assert verify("mine", "--claims", skeleton("mine", "refuted", folder="changed"), "--out", out)[0] == REFUTED
    assert computed == ["mine"] * 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"status": "supported"}', '[{"id": "mine"}, {"id": "mine"}]', "[1]"]
)
def test_a_corrupt_record_is_named_and_computed_again(skeleton, tmp_path, computed, no_figures, text):
    folder, out = skeleton(), tmp_path / "out"
    out.mkdir()
    (out / "mine.json").write_text(text)
    code, printed, err = verify("mine", "--claims", folder, "--out", out, "--json")
    assert code == SUPPORTED and computed == ["mine"]
    assert err.strip() == f"featlab: {out / 'mine.json'} cannot be read and is computed again."
    assert records((out / "mine.json").read_text()) == records(printed)


def test_an_interrupted_command_goes_on_where_it_was(skeleton, tmp_path, computed, no_figures):
    skeleton("first")
    folder, out = skeleton("second", "refuted"), tmp_path / "out"
    command = ("first", "second", "--claims", folder, "--out", out, "--json")
    computed.interrupt = ("second",)
    code, printed, err = verify(*command)
    assert code == INTERRUPTED and [record["id"] for record in records(printed)] == ["first"]
    assert err.strip() == f"featlab: interrupted during second; the same command goes on from {out}."
    assert (out / "first.json").exists() and not (out / "second.json").exists() and computed == ["first"]
    computed.interrupt = ()
    code, resumed, _ = verify(*command)
    assert code == REFUTED and computed == ["first", "second"]
    assert records(resumed)[0] == records(printed)[0] and len(records(resumed)) == 2


def test_an_interrupt_without_a_folder_says_what_to_do(skeleton, computed):
    computed.interrupt = ("mine",)
    code, out, err = verify("mine", "--claims", skeleton())
    assert code == INTERRUPTED and out == "" and "with --out it could go on from there" in err


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(skeleton, tmp_path, computed):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    assert "cannot be written" in refused("verify", "mine", "--claims", skeleton(), *TINY, "--out", blocked)
    assert computed == []


@pytest.mark.slow
def test_perturbed_statuses_are_in_the_record_and_in_the_table(skeleton, tmp_path, computed, no_figures):
    corner = (" -1.0, (-2.0, -0.5)", " -1.0 if self.width == 16 else -1.5, (-2.0, -0.5)")
    folder, out = skeleton("mine", corner), tmp_path / "out"
    command = ("mine", "--claims", folder, "--out", out)
    assert verify(*command)[0] == SUPPORTED  # a record that was not perturbed will not do
    code, printed, _ = verify(*command, "--perturb")
    assert code == SUPPORTED and len(computed) == 2  # the exit code is the claim's own
    assert "✗ width 16 -> 32: refuted" in printed and "✓ other seeds: supported" in printed
    _, printed, _ = verify(*command, "--perturb", "--json")
    assert len(computed) == 2
    assert records(printed)[0]["perturbed"] == {"width 16 -> 32": "refuted", "other seeds": "supported"}


# ---- claims, show, cite, new claim, run


def test_the_list_has_every_claim():
    code, out, _ = call("claims")
    entries = json.loads(call("claims", "--json")[1])
    assert code == 0 and [entry["id"] for entry in entries] == list(BUILT_IN)
    for entry in entries:
        assert set(entry) == {"id", "paper", "title", "minutes"}
        assert (
            entry["id"] in out
            and re.fullmatch(r"[\w-]+ (et al\.|and \w+) 20\d\d", entry["paper"])
            and entry["paper"] in out
        )


@pytest.mark.parametrize("name", BUILT_IN)
def test_show_says_what_a_claim_says(name):
    code, out, _ = call("show", name)
    claim = BUILT_IN[name]
    assert code == 0 and out.startswith(f"{name}: {claim.title}\n") and "FAILS" not in out
    seeds = f"laptop: {claim.sizes['laptop'].seeds} seeds"
    conditions = [f"holds  {one.sentence}: " for one in claim.assumptions(claim.typical())]
    for text in (claim.statement, claim.refuted_if, claim.control_changes, seeds, *conditions):
        assert text in out
    for knob in claim.knobs:
        assert f"  {knob} = " in out
    assert fl.rebuild(out.split("A typical experiment:\n")[1].splitlines()[0]) == claim.typical()


def test_the_assumptions_are_those_of_the_setting():
    def orthogonality(*changes):
        (line,) = [line for line in call("show", "kou2023_phase", *changes)[1].splitlines() if "n^2 / d" in line]
        return line.split()[0], float(re.search(r": ([\d.e+-]+), should be << 1", line)[1])

    assert orthogonality() == ("holds", pytest.approx(128**2 / 1e9, rel=0.01))
    assert orthogonality("data.n=50") == ("holds", pytest.approx(50**2 / 1e9, rel=0.01))
    assert orthogonality("data.n=50", "data.d=1e4") == ("FAILS", 0.25)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["kou2023_phas"], "did you mean 'kou2023_phase'?"),
        (["cao2022_phase", "data.m=5"], "SignalNoise has no field 'm'"),
        (["cao2022_phase", "n"], "A change must have the form data.snr=0.2, got 'n'."),
        (["cao2022_phase", "data.n=1"], "The assumptions of cao2022_phase mean nothing for this experiment"),
        (["cao2022_phase", "network.activation=relu"], "The assumptions of cao2022_phase mean nothing"),
        (["cao2022_phase", "algorithm=GradientDescent(0.1)"], "The assumptions of cao2022_phase mean nothing"),
        (
            ["kou2023_phase", "data.signal_norm=none", "data.snr=0.1"],
            "The assumptions of kou2023_phase mean nothing",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_shown_is_refused_in_one_sentence(arguments, sentence):
    assert sentence in refused("show", *arguments)


def test_each_reference_is_cited_once():
    code, out, _ = call(
        "cite", "growth_laws", "cao2022_phase", "kou2023_phase", "kou2023_error_decay", "growth_laws"
    )
    assert code == 0 and re.findall(r"^@\w+\{(\w+),", out, re.MULTILINE) == ["cao2022benign", "kou2023benign"]
    assert out.count("{") == out.count("}")
    assert "did you mean" in refused("cite", "cao2022_phas")
    assert call("cite")[0] == BAD_INPUT


def test_a_new_claim_is_complete_and_runs(tmp_path):
    """As it is written, at its own sizes."""
    code, out, _ = call("new", "claim", "my_theorem", "--in", tmp_path / "claims")
    path = tmp_path / "claims" / "my_theorem.py"
    assert code == 0 and out.startswith(
        f"{path}; verify it with: featlab verify my_theorem --claims {path.parent}"
    )
    assert "NAME" not in path.read_text()
    assert verify("my_theorem", "--claims", path.parent, "--seeds", "24")[0] == SUPPORTED


def test_a_new_claim_is_written_here_unless_said_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("new", "claim", "my_theorem")[0] == 0 and Path("my_theorem.py").is_file()


@pytest.mark.parametrize("name", ["2fast", "class", "_hidden", "a-b", "a b", "a.py", "../a"])
def test_a_bad_name_is_refused(tmp_path, name):
    sentence = refused("new", "claim", name, "--in", tmp_path)
    assert "must be a Python name such as cao2022_phase" in sentence and repr(name) in sentence
    assert not list(tmp_path.iterdir())


def test_a_file_that_exists_is_not_overwritten(tmp_path):
    (tmp_path / "mine.py").write_text("precious")
    assert "exists already; choose another name or remove it." in refused("new", "claim", "mine", "--in", tmp_path)
    assert (tmp_path / "mine.py").read_text() == "precious"
    assert "cannot be written" in refused("new", "claim", "mine", "--in", tmp_path / "mine.py")


@pytest.mark.slow
def test_a_claims_typical_experiment_can_be_run(tmp_path):
    changes = ("steps=3", "data.n=8", "network.width=4")
    code, out, _ = call("run", "cao2022_phase", *changes, "--seeds", "2", "--out", tmp_path)
    assert code == 0 and "cao2022_phase" in out
    history = fl.load(tmp_path)
    assert history.sizes["seed"] == 2 and fl.rebuild(history.attrs["experiment"]).data.n == 8
    assert "did you mean 'cao2022_phase'?" in refused("run", "cao2022_phas")
