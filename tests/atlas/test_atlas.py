"""The atlas: one page with everything inside, whatever becomes of a claim, and files beside it."""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import matplotlib
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

import featlab as fl
from featlab.atlas import figures, gather
from featlab.atlas.atlas import write_atlas
from featlab.atlas.cards import main_check
from featlab.atlas.tables import numbers
from featlab.claims.kept import kept_verdicts
from featlab.claims.skeleton import write_skeleton
from featlab.commands.cli import main
from featlab.errata import HOW_READ, READINGS

# What makes the skeleton quick, and then one change for each kind of claim.
QUICK = [
    ("(seeds=3, rates=(0.2, 0.1, 0.05))", "(seeds=24, rates=(0.8, 0.4, 0.2))"),
    ("loss: float = 0.3", "loss: float = 0.5"),
]
HOSTILE = [
    ("training time to a given", "<script>alert(1)</script> time to a"),
    ('statement = r"T(', r'statement = r"\foo T('),
    ("state the theorem here", "state $x < y$ here </article>"),
    ("author = {Author}", "author = {<img src=x onerror=alert(2)>}"),
    ("the exponent of the time in", r"\"><svg onload=alert(3)> in"),
]
REFUTED = [(" -1.0, rivals=(-2.0, -0.5)", " -1.5, rivals=(-2.0, -0.5)")]
BREAKS = [("def checks(self, lab):", "def checks(self, lab):\n        raise ZeroDivisionError('oh <b>')")]
PICTURED = [
    (
        "    def checks(self, lab):",
        """    def scene(self):
        probes = fl.probes
        return fl.Experiment(
            data=fl.data.SignalNoise(n=4, d=1e6, snr=0.5, noise_scale=1e-3),
            network=fl.networks.TwoLayerCNN(width=2, init_scale=1e-3),
            algorithm=fl.algorithms.GradientDescent(0.5),
            probes=[probes.train_loss, probes.test_loss(count=500), probes.coefficients],
            steps=probes.until(probes.train_loss, 0.2, at_most=90),
        )

    def picture(self):
        from featlab.claims import Picture

        return Picture(
            number=lambda experiment: (experiment.data.snr / 0.3) ** 2, symbol=r"\\mathrm{SNR}^2",
            below="Below </script>.", above="Above.", slider="data.snr", slider_symbol=r"\\mathrm{SNR}",
            values=(0.1, 0.2, 0.8), across="data.n", across_symbol="n", across_values=(4, 8),
            shows="test_loss", level=0.35,
        )

    def checks(self, lab):""",
    ),
    ("rates).train_loss)", "rates).steps_taken)"),  # the control is not refuted
]
CLAIMS = {"hostile": HOSTILE, "wrong": REFUTED, "broken": BREAKS, "pictured": PICTURED}
ERRATUM = "metric_transpose"
pytestmark = pytest.mark.xdist_group("atlas")  # one atlas for all
OPTIONS = {"size": "tiny", "base_seed": 11}


class Page(HTMLParser):
    """Elements with their attributes, the text of scripts, and whether every element is closed."""

    EMPTY = {"meta", "img", "input", "wbr", "br"}

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.open, self.words = [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self.open or self.open[-1] != "style":
            self.words += data

    def all(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and all(a.get(key) == one for key, one in wanted.items())]


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    for name, changes in CLAIMS.items():
        path = write_skeleton(name, folder)
        text = path.read_text()
        for old, new in (*QUICK, *changes):
            assert old in text, old
            text = text.replace(old, new)
        path.write_text(text)
    return str(folder)


@pytest.fixture(scope="module")
def atlas(claims, tmp_path_factory):
    """All of it once: the exit code and the folder."""
    out = tmp_path_factory.mktemp("out")
    return write_atlas(folder=claims, out=out, only=[*CLAIMS, ERRATUM], **OPTIONS), out


@pytest.fixture(scope="module")
def page(atlas):
    return Page((atlas[1] / "atlas.html").read_text())


def test_the_files_of_an_atlas(atlas):
    code, out = atlas
    assert code == 2  # one broke, and the page is there all the same
    names = {path.name for path in out.iterdir()}
    assert {"atlas.html", "errata.html", "atlas.md", "atlas.tex", "exponents.svg", "exponents.png"} <= names
    kept = {path.name for path in (out / "records").iterdir()}
    assert {f"{id}.{kind}" for id in ("hostile", "wrong", "pictured", ERRATUM) for kind in ("json", "svg")} <= kept
    assert "broken.json" not in kept


@pytest.mark.parametrize("name", ["atlas.html", "errata.html"])
def test_a_page_asks_for_nothing_beyond_itself(atlas, name):
    text = (atlas[1] / name).read_text()
    page = Page(text)
    addresses = [one[key] for _, one in page.elements for key in ("src", "href", "srcset", "action") if key in one]
    assert addresses and all(re.match(r"data:image/|#|(atlas|errata)\.html$", one) for one in addresses)
    assert not any(tag in ("link", "iframe", "object", "embed", "base") for tag, _ in page.elements)
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    assert not re.search(r"https?://", re.sub(r"http://www\.w3\.org/\S+", "", text))  # names of XML, not addresses
    (policy,) = [one["content"] for one in page.all("meta") if "http-equiv" in one]
    assert (
        policy.startswith("default-src 'none'; script-src 'sha256-") and "'unsafe-inline'; img-src data:" in policy
    )


def test_only_the_pages_own_scripts_may_run(page):
    (policy,) = [one["content"] for one in page.all("meta") if "http-equiv" in one]
    running = [text for attributes, text in page.scripts if attributes.get("type") != "application/json"]
    assert len(running) == 2
    for text in running:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert not any(key.startswith("on") for _, one in page.elements for key in one)


def test_texts_of_users_stay_texts(page, atlas):
    assert not page.all("svg") and len(page.scripts) == 3  # the slice's data beside the two
    assert "<script>alert(1)</script> time to a loss scales as" in page.words
    assert "state x<y here </article>" in page.words.replace("\n", " ")
    assert "<img src=x onerror=alert(2)>" in page.words and '"><svg onload=alert(3)>' in page.words
    assert r"\foo T(L_S" in page.words  # a formula that cannot be shown is shown as it is written
    assert "ZeroDivisionError: oh <b>" in page.words
    assert r"<script>" not in (atlas[1] / "atlas.md").read_text().replace(r"\<script", "")


def test_every_claim_has_a_row_and_a_card(page):
    wanted = {"hostile": "supported", "wrong": "refuted", "broken": "broken", "pictured": "inconclusive"}
    for tag in ("tr", "article"):
        found = {one["data-claim"]: one["data-status"] for one in page.all(tag) if "data-claim" in one}
        assert found == wanted
    targets = {one["id"] for _, one in page.elements if "id" in one}
    assert {one["href"][1:] for one in page.all("a") if one["href"].startswith("#")} <= targets
    ids = [one["id"] for _, one in page.elements if "id" in one]
    assert len(ids) == len(set(ids))
    for words in ("✓ supported", "✗ refuted", "? inconclusive", "! broke", "It broke while it was verified."):
        assert words in page.words
    for shown in (
        "exponent of the time in the learning rate",
        "learning rate (small steps)",
        "width",
        "@misc{wrong",
    ):
        assert shown in page.words
    assert "featlab verify wrong --size tiny --base-seed 11 --claims" in page.words
    assert "rivals refuted: −2, −1/2" in page.words


def test_figures_say_what_they_show(page):
    images = page.all("img")
    assert len(images) == 1 + 3  # all exponents, and a figure for each verdict
    assert "3 measured exponents" in images[0]["alt"] and "1 refuted" in images[0]["alt"]
    (wrong,) = [one for one in images if one["alt"].startswith("Verdict on wrong: refuted.")]
    assert "theory −3/2 ±" in wrong["alt"] and "The control" in wrong["alt"]
    assert all(one["src"].startswith("data:image/svg+xml;base64,") for one in images)
    svg = base64.b64decode(wrong["src"].partition(",")[2]).decode()
    assert svg.startswith("<svg") and svg.endswith("</svg>")


def test_a_slice_is_data_for_a_slider(page):
    (text,) = [text for attributes, text in page.scripts if attributes.get("type") == "application/json"]
    data = json.loads(text)
    assert data["values"] == [0.1, 0.2, 0.8] and data["below"] == "Below </script>."
    assert data["numbers"] == pytest.approx([1 / 9, 4 / 9, 64 / 9], rel=1e-3)
    assert data["boundary"] == pytest.approx(0.3, rel=1e-3) and data["slider"] == "SNR"
    assert [panel["names"] for panel in data["panels"]] == [["train_loss", "test_loss"], ["gamma", "rho"]]
    assert len(data["curves"]) == 3 and len(data["steps"]) <= 60 and data["steps"][0] == 0
    for curve in data["curves"]:
        for mean, low, high in curve.values():
            assert len(mean) == len(data["steps"])
            assert all(a <= b * (1 + 1e-3) and b <= c * (1 + 1e-3) for a, b, c in zip(low, mean, high))
    weak, _, strong = data["endings"]["mean"]
    assert strong < weak  # the signal helps
    (slider,) = page.all("input", type="range")
    assert (slider["max"], slider["value"]) == ("2", "2")  # it begins beyond the boundary


def test_the_slice_is_of_the_seeds_it_says(atlas, claims):
    from featlab.claims import find_claims
    from featlab.text import changed

    data = json.loads((atlas[1] / "slices" / "pictured.json").read_text())["slice"]
    scene = changed(find_claims(claims)["pictured"].scene(), {"data.snr": 0.8})
    history = fl.run(scene, 4, progress=False, products=True)
    gamma = abs(history.gamma).max(["class", "filter"]).sel(step=data["steps"]).mean("seed")
    assert data["curves"][2]["gamma"][0] == pytest.approx(gamma.values, rel=1e-3)


def test_tables_for_other_places(atlas):
    lines = (atlas[1] / "atlas.md").read_text().splitlines()
    assert len(lines) == 2 + len(CLAIMS) and len({line.replace(r"\|", "").count("|") for line in lines}) == 1
    (wrong,) = [line for line in lines if line.startswith("| `wrong`")]
    assert "-3/2 ± 0.15 | refuted |" in wrong
    tex = (atlas[1] / "atlas.tex").read_text()
    assert all(word in tex for word in (r"\toprule", r"\midrule", r"\bottomrule", r"$-3/2 \pm 0.15$ & refuted \\"))


def test_errata_show_both_formulas(atlas):
    text = (atlas[1] / "errata.html").read_text()
    page = Page(text)
    assert [one["id"] for one in page.all("article")] == [ERRATUM]
    assert text.count('class="printed"') == text.count('class="corrected"') == 1
    assert "refuted, as it must be" in page.words and "a single symbol is at stake" in page.words.lower()
    assert f"find_errata()['{ERRATUM}']" in page.words
    overview = (atlas[1] / "atlas.html").read_text()
    assert "Errata of the sources" in overview and "a slip may be one of the" in overview


def test_readings_stand_beside_the_errata_and_both_say_how_sources_were_read(atlas):
    page = Page((atlas[1] / "errata.html").read_text())
    assert HOW_READ in page.words and "none of it is a slip" in page.words
    assert all(f"{one.source}, {one.place}" in page.words for one in READINGS)


# ---- again, from records, strictly


@pytest.fixture
def nothing_is_computed(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr(gather, "verify", refuse)
    monkeypatch.setattr("featlab.atlas.slices.run", refuse)


def test_what_is_there_is_not_computed_again(atlas, claims, nothing_is_computed, capsys):
    out = atlas[1]
    before = (out / "atlas.html").read_bytes()
    ids = ["hostile", "wrong", "pictured", ERRATUM]
    assert write_atlas(folder=claims, out=out, only=ids, **OPTIONS) == 0
    assert "wrong: refuted, from the records" in capsys.readouterr().out
    page = Page((out / "atlas.html").read_text())
    assert len(page.all("article")) == 3 and len(page.scripts) == 3
    (out / "atlas.html").write_bytes(before)


@pytest.mark.parametrize(
    "ids, code", [(["hostile"], 0), (["hostile", "pictured"], 3), (["hostile", "pictured", "wrong"], 1)]
)
def test_strict_exits_as_verify_does(atlas, claims, nothing_is_computed, tmp_path, ids, code):
    shutil.copytree(atlas[1] / "records", tmp_path / "records")
    for strict, expected in ((True, code), (False, 0)):
        assert (
            write_atlas(folder=claims, out=tmp_path, only=ids, strict=strict, slices=False, **OPTIONS) == expected
        )


def test_records_are_only_read(atlas, claims, nothing_is_computed, tmp_path, capsys):
    records = tmp_path / "some"
    records.mkdir()
    shutil.copy(atlas[1] / "records" / "wrong.json", records)
    (records / "notes.json").write_text("no JSON")
    larger = json.loads((records / "wrong.json").read_text())[0] | {"size": "laptop"}
    (records / "a_larger_one.json").write_text(json.dumps([larger, {"id": "hostile"}]))
    options = {"folder": claims, "records": str(records), "only": list(CLAIMS), "slices": False}
    assert write_atlas(out=tmp_path / "out", **options) == 0
    said = capsys.readouterr().err
    assert "no record of broken, hostile, pictured." in said and "is not JSON" in said
    page = Page((tmp_path / "out" / "atlas.html").read_text())
    found = {one["data-claim"]: one["data-status"] for one in page.all("article")}
    assert found == {"hostile": "missing", "wrong": "refuted", "broken": "missing", "pictured": "missing"}
    assert "laptop size" in page.words and len(page.all("img")) == 2
    assert write_atlas(out=tmp_path / "out", strict=True, **options) == 1
    shutil.rmtree(records)
    records.mkdir()
    with pytest.raises(fl.InputError, match="There is no record of a verdict in"):
        write_atlas(out=tmp_path / "out", **options)


def test_a_record_with_fewer_keys_still_has_a_card(tmp_path, claims):
    check = {"name": "x", "kind": "equals", "measured": 1.0, "low": None, "high": None, "expected": 1.0}
    check |= {"lower": 0.95, "upper": 1.05}
    record = {
        "id": "wrong",
        "status": "inconclusive",
        "checks": [check | {"margin": 0.05, "status": "inconclusive"}],
    }
    file = tmp_path / "old.json"
    file.write_text(json.dumps(record))
    assert write_atlas(out=tmp_path, folder=claims, records=str(file), only=["wrong"], slices=False) == 0
    page = Page((tmp_path / "atlas.html").read_text())
    assert not page.all("img") and "1 ± 0.05" in page.words


def test_an_interrupt_leaves_the_page_of_what_there_is(atlas, claims, tmp_path, monkeypatch, capsys):
    shutil.copytree(atlas[1] / "records", tmp_path / "records")
    (tmp_path / "records" / "wrong.json").unlink()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(gather, "verify", interrupted)
    assert write_atlas(folder=claims, out=tmp_path, only=["hostile", "wrong"], **OPTIONS) == 130
    assert "the same command goes on" in capsys.readouterr().err
    page = Page((tmp_path / "atlas.html").read_text())
    found = {one["data-claim"]: one["data-status"] for one in page.all("article")}
    assert found == {"hostile": "supported", "wrong": "missing"}


def test_a_slice_that_breaks_is_said_and_does_not_cost_the_page(atlas, claims, tmp_path, monkeypatch):
    shutil.copytree(atlas[1] / "records", tmp_path / "records")

    def breaks(*_, **__):
        raise ValueError("no such slice")

    monkeypatch.setattr("featlab.atlas.slices.run", breaks)
    assert write_atlas(folder=claims, out=tmp_path, only=["pictured"], **OPTIONS) == 2
    assert "no such slice" in Page((tmp_path / "atlas.html").read_text()).words


@pytest.mark.slow
def test_processes_give_the_same_records(atlas, tmp_path):
    ids = [ERRATUM, "label_noise_lemma", "decomposition_norm"]
    assert write_atlas(out=tmp_path, only=ids, processes=2, **OPTIONS) == 0
    page = Page((tmp_path / "errata.html").read_text())
    assert {one["id"] for one in page.all("article")} == set(ids) and "not verified" not in page.words
    alone, beside = (
        json.loads((out / "records" / f"{ERRATUM}.json").read_text())[0] for out in (atlas[1], tmp_path)
    )
    assert alone["checks"] == beside["checks"] and alone["control"] == beside["control"]


@pytest.mark.slow
def test_a_claim_that_ends_its_process_does_not_end_the_others(tmp_path, claims):
    folder = tmp_path / "claims"
    folder.mkdir()
    for name in ("dies", "follows"):
        ends = "import os; os._exit(1)" if name == "dies" else "raise ZeroDivisionError"
        path = write_skeleton(name, folder)
        path.write_text(
            path.read_text().replace("    def checks(self, lab):", f"    def checks(self, lab):\n        {ends}")
        )
    ids = ["dies", "follows", ERRATUM, "decomposition_norm"]
    assert write_atlas(folder=str(folder), out=tmp_path, only=ids, processes=2, **OPTIONS) == 2
    words = Page((tmp_path / "atlas.html").read_text()).words
    assert "process ended" in words and "ZeroDivisionError" in words
    assert "not verified" not in Page((tmp_path / "errata.html").read_text()).words


# ---- the command, figures


def call(*arguments):
    return CliRunner().invoke(main, ["atlas", *map(str, arguments)], catch_exceptions=False)


def test_the_command(atlas, claims, tmp_path):
    done = call("--records", atlas[1] / "records", "--claims", claims, "--out", tmp_path, "--no-slices")
    assert done.exit_code == 0 and "atlas.html" in done.stdout and "no record of" in done.stderr
    page = Page((tmp_path / "atlas.html").read_text())
    cards = {one["data-claim"]: one["data-status"] for one in page.all("article")}
    kept = kept_verdicts()["cao2022_phase"]["status"]  # what was decided is shown until it is repeated
    assert cards["wrong"] == "refuted" and cards["cao2022_phase"] == kept and len(cards) > 20
    assert "not yet" in page.words
    assert "--no-slices --out" in page.words
    refused = call("--records", tmp_path / "nowhere", "--out", tmp_path)
    assert (
        refused.exit_code == 2 and refused.stderr.count("\n") == 2 and "no record of a verdict" in refused.stderr
    )
    (tmp_path / "file").write_text("")
    blocked = call("--records", atlas[1] / "records", "--out", tmp_path / "file")
    assert blocked.exit_code == 2 and "cannot be written" in blocked.stderr
    assert call("--size", "huge").exit_code == 2


@pytest.mark.parametrize(("name", "opposite"), [("cao2022_phase", False), ("mei2022_double_descent", True)])
def test_what_was_decided_stands_beside_what_was_repeated_smaller(tmp_path, name, opposite):
    kept = kept_verdicts()[name]
    small = kept | {"size": "smoke", "status": "inconclusive", "word": "too small to judge", "seeds": 3}
    small["checks"] = [one | {"status": "refuted" if opposite else "inconclusive"} for one in kept["checks"]]
    (tmp_path / f"{name}.json").write_text(json.dumps([small]))
    write_atlas(records=str(tmp_path), out=tmp_path / "out", only=[name], slices=False)
    page = Page((tmp_path / "out" / "atlas.html").read_text())
    assert [one["data-status"] for one in page.all("article")] == [kept["status"]]
    assert f"laptop size, {kept['seeds']} seeds, decided 20" in page.words
    assert "other sets of seeds say the same" in page.words
    said = "0 consistent, no check of theirs saying the opposite; 1 not" if opposite else "1 consistent"
    assert said in page.words and ("not consistent: " in page.words) == opposite
    assert "Repeated here at smoke size" in page.words and "too small to judge" not in page.words
    measured = numbers(main_check(kept))[1].split()[0]
    assert measured in (tmp_path / "out" / "atlas.md").read_text()


def test_a_size_that_is_none_is_refused(tmp_path):
    with pytest.raises(fl.InputError, match="must be one of tiny, smoke"):
        write_atlas(size="huge", out=tmp_path)


def test_a_large_figure_becomes_dots_and_a_small_one_keeps_its_letters():
    with matplotlib.rc_context({"svg.hashsalt": "x"}):
        figure = Figure(figsize=(4, 2))
        figure.text(0.1, 0.5, "abc")
        svg = figures.svg_of(figure)
    small = figures.compact(svg)
    assert len(small) < len(svg) and "<!--" not in small
    assert re.findall(r"scale\(([\d.]+)", small) == re.findall(r"scale\(([\d.]+)", svg)  # or letters would move
    kept = figures.embedded(svg, lambda: figure)
    assert kept.src.startswith("data:image/svg+xml;base64,") and kept[1:] == (216, 108)
    dots = figures.embedded(svg, lambda: figure, most=10)
    assert dots.src.startswith("data:image/png;base64,") and dots[1:] == (216, 108)
    assert base64.b64decode(dots.src.partition(",")[2]).startswith(b"\x89PNG")
