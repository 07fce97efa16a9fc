"""The documentation: pages can be reached, links lead somewhere, names are there, and the code runs."""

import fnmatch
import importlib
import operator
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

import featlab as fl
from featlab.claims.kept import kept_verdicts
from featlab.commands.cli import main
from featlab.experiment import RESERVED

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FOLDERS = ("data", "networks", "objectives", "algorithms", "probes", "plots")


def written():
    """The pages that are written by hand, by their path below docs/."""
    found = [path for path in DOCS.rglob("*") if path.suffix in (".md", ".ipynb")]
    inside = {path.relative_to(DOCS): path for path in found}
    skipped = {"_build", "generated", ".ipynb_checkpoints"}
    return {str(name): path for name, path in inside.items() if not skipped & set(name.parts)}


@pytest.fixture(scope="module")
def site():
    """The modules that make pages, and the pages they make."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS / "_ext")
        names = ("markdown_text", "public_names", "theorems", "gallery", "readme_tables")
        modules = {name: importlib.import_module(name) for name in names}
        made = {
            f"generated/theorems/{name}.md": text for name, text in modules["theorems"].theorem_pages().items()
        }
        made |= {f"generated/gallery/{name}.md": text for name, text in modules["gallery"].gallery_pages().items()}
        yield modules, made
    for name in names:
        del sys.modules[name]


# ---- pages and links


def plain(text):
    """A page without its code blocks."""
    return re.sub(r"^(`{3,})(?!\{figure\}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)


def entries(text):
    for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                yield re.sub(r".*<(.*)>", r"\1", line)


def test_every_page_is_in_a_toctree(site):
    texts = {name: path.read_text() for name, path in written().items()} | site[1]
    pages, seen = {name.rpartition(".")[0]: name for name in texts}, set()
    left = ["index"]
    while left:
        page = left.pop()
        seen.add(page)
        folder = page.rpartition("/")[0]
        for entry in entries(texts[pages[page]]) if pages[page].endswith(".md") else ():
            target = f"{folder}/{entry}".lstrip("/") if not entry.startswith("?") else entry[1:]
            found = fnmatch.filter(pages, target)
            assert found or entry.startswith("?"), f"{page} lists {entry}, which is not there"
            left += [one for one in found if one not in seen]
    assert seen == set(pages)


def anchor(heading):
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def test_every_link_and_picture_leads_somewhere(site):
    texts = {f"docs/{name}": path.read_text() for name, path in written().items() if name.endswith(".md")}
    texts |= {f"docs/{name}": text for name, text in site[1].items()}
    texts["README.md"] = (ROOT / "README.md").read_text()
    checked = 0
    for name, text in texts.items():
        links = re.findall(r"\]\(([^)\s]+)\)", plain(text)) + re.findall(
            r"\{(?:figure|literalinclude)\} (\S+)", text
        )
        for link in links:
            if re.match(r"\w+://", link):
                continue
            path, _, place = link.partition("#")
            # Without ..: the folder of generated pages may not be there.
            target = ((ROOT / name).parent / path if path else ROOT / name).resolve()
            inside = str(target.relative_to(ROOT))
            assert target.exists() or inside in texts or inside == "docs/generated/my_theorem.py", (
                f"{name}: {link}"
            )
            if place:
                headings = re.findall(r"^#+ (.*)$", texts[inside], re.MULTILINE)
                assert place in map(anchor, headings), f"{name}: {link}"
            checked += 1
    assert checked > 100


def test_every_claim_and_every_example_has_its_page(site):
    _, made = site
    claims = fl.claims.find_claims()
    files = [path.stem for kind in ("*.py", "*.toml") for path in (ROOT / "examples").glob(kind)]
    theorems = {f"generated/theorems/{name}.md" for name in (*claims, "index")}
    assert set(made) == theorems | {f"generated/gallery/{name}.md" for name in (*files, "index")}
    for name, claim in claims.items():
        page = made[f"generated/theorems/{name}.md"]
        parts = [*re.split(r";\s*\\qquad", claim.statement), claim.refuted_if, claim.reference.strip()]
        parts += [f"featlab verify {name}", *(f"| `{knob}` |" for knob in claim.knobs)]
        parts += [one.sentence.replace("|", r"\|") for one in claim.assumptions(claim.typical())]
        for part in parts:
            assert part in page, (name, part)


def test_the_verdicts_of_the_pages_are_the_stored_ones(site):
    stored = kept_verdicts()
    assert len(stored) > 10
    for record in stored.values():
        page = site[1][f"generated/theorems/{record['id']}.md"]
        assert f"**{record['word'].capitalize()}**" in page and record["reason"] in page
        for check in record["checks"]:
            row = f"| {check['measured']:.4g} | [{check['low']:.4g}, {check['high']:.4g}] |"
            assert row in page and check["name"].replace("|", r"\|") in page


@pytest.mark.parametrize("page", ["README.md", "docs/verdicts.md", "docs/clauses.md", "docs/trust.md"])
def test_tables_of_verdicts_are_made_from_the_stored_ones(site, page):
    made, path = site[0]["readme_tables"], ROOT / page
    text = path.read_text()
    assert path in made.FILES and made.rewritten(text) == text, "run `python docs/_ext/readme_tables.py`"
    right, wrong = ("more checks", "fewer checks") if "README" in page else ("supported |", "refuted |")
    false = text.replace(right, wrong, 1)
    assert false != text and made.rewritten(false) == text


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 100
    assert len(text.split()) <= 900 and len(re.findall(r"\d\.\d", text)) <= 30


def test_the_walk_through_the_inside_names_what_is_there():
    named = re.findall(r"`(featlab[.\w]*)(?::(\w+))?`", (DOCS / "inside.md").read_text())
    assert len(named) > 15
    for module, name in named:
        found = importlib.import_module(module)
        assert not name or hasattr(found, name), (module, name)
    rooms = re.findall(r"^\| (`.*?) \|", (DOCS / "inside.md").read_text(), re.MULTILINE)
    listed = {room for row in rooms for room in re.findall(r"`(\w+)`", row)} - {"run", "sweep", "verify"}
    packages = {path.parent.name for path in (ROOT / "src" / "featlab").glob("*/__init__.py")}
    assert listed == packages | {"experiment", "text"}


# ---- names


def listed():
    """The names that the API pages ask for, by module."""
    found = {}
    for path in sorted((DOCS / "api").glob("*.md")):
        for module, names in re.findall(r"```\{public\} (\S+)\n(.*?)```", path.read_text(), re.DOTALL):
            found.setdefault(module, []).extend(name for name in names.split() if name != "...")
    return found


def public(module):
    return {n for n, thing in vars(module).items() if n[0] != "_" and not isinstance(thing, ModuleType)}


@pytest.mark.parametrize("folder", (*FOLDERS, "claims"))
def test_every_public_name_is_on_an_api_page(folder):
    names = listed()[f"featlab.{folder}"]
    assert sorted(names) == sorted(public(getattr(fl, folder)))


def test_a_name_that_no_page_lists_is_on_its_page_all_the_same(site, monkeypatch):
    """So that a new part is one file: its page has a block for all that is not in the others."""
    for folder in FOLDERS[:5]:
        assert re.search(
            rf"```\{{public\}} featlab.{folder}\n\.\.\.\n```", (DOCS / "api" / f"{folder}.md").read_text()
        )
    with_unnamed = site[0]["public_names"].with_unnamed
    assert with_unnamed("featlab.data", ["SignalNoise"]) == ["SignalNoise"]
    assert with_unnamed("featlab.data", ["..."]) == []
    monkeypatch.setattr(fl.data, "Unheard", fl.data.SignalNoise, raising=False)
    assert with_unnamed("featlab.data", ["..."]) == ["Unheard"]


def test_every_verb_is_on_an_api_page():
    assert sorted(listed()["featlab"]) == sorted(fl._NAMES)


def test_every_listed_name_is_described(site):
    described = site[0]["public_names"].described
    for module, names in listed().items():
        for name in names:
            head, _, words = described(module, name).partition("\n")
            assert re.match(rf"`+\{{py:(class|function|data)\}} {name}\b", head), head
            assert len(words.strip("`\n")) > 10, f"{module}.{name} has no words"


def test_the_fields_of_a_part_come_with_what_they_take(site):
    text = site[0]["public_names"].described("featlab.data", "SignalNoise")
    assert "| `noise_scale` | a finite number above 0 | `1.0` | $\\sigma$, noise in each coordinate |" in text
    assert (
        "| `signal_norm` | a finite number of at least 0 | `None` | $\\Vert \\mu\\Vert $, length of the signal |"
        in text
    )
    text = site[0]["public_names"].described("featlab.probes", "test_error")
    assert "`clean_test_error`" in text and "test_error(count=10000)" in text


ATTRIBUTES = {"n", "signal_norm", "noise_norm", "test_flip", "power", "learning_rate"}


def test_the_glossary_names_what_there_is(site):
    variables = {name.strip("`") for name, *_ in site[0]["public_names"].variables()}
    known = variables | RESERVED | ATTRIBUTES
    rows = re.findall(r"^\|.*\|$", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[-2])]
    assert len(names) > 20 and set(names) <= known
    for row in rows:
        for name in re.findall(r"`([^`]+)`", row.split("|")[-3]):
            assert exists(name), name


def test_the_glossary_has_the_symbols_that_fields_declare(site):
    declared = {
        name: symbol
        for symbol, _, names in site[0]["public_names"].declared_fields()
        for name in names.split(", ")
    }
    assert declared["`TwoLayer.power`"] == "$p$" and declared["`relu_power.power`"] == "$q$"
    own = {"`TwoLayer.power`": "$N^{-p}$"}
    rows = [row.split("|") for row in re.findall(r"^\|.*\|$", (DOCS / "glossary.md").read_text(), re.MULTILINE)]
    named = [(cells[1].strip(), name.strip()) for cells in rows for name in cells[-3].split(",")]
    checked = [(symbol, name) for symbol, name in named if name in declared]
    assert len(checked) > 5
    for symbol, name in checked:
        assert symbol.startswith(own.get(name, declared[name])), name


def exists(name):
    """Whether a field, a part, a probe or a theory goes by this name of the glossary."""
    first, _, rest = name.partition("(")[0].partition(".")
    pieces = {
        piece: getattr(getattr(fl, folder), piece) for folder in FOLDERS for piece in public(getattr(fl, folder))
    }
    if first == "theory":
        return callable(operator.attrgetter(rest)(fl.theory))
    if first in ("data", "network", "algorithm"):
        return any(rest in fields(piece) for piece in pieces.values())
    return first in fields(fl.Experiment) or first in pieces and (not rest or rest in fields(pieces[first]))


def fields(piece):
    return getattr(piece, "__dataclass_fields__", ())


# ---- code

SHORTER = {
    "steps=1000": "steps=20",
    "seeds=8": "seeds=2",
    "16:128:6log": "20:24:2log",  # sizes that share a program
    "0.1:1:12log": "0.1:1:2log",
    '"lazy_or_rich", "smoke"': '"lazy_or_rich", "tiny", base_seed=11',
    "--size smoke": "--size tiny --base-seed 11",
}


@pytest.mark.slow
def test_the_quick_start_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "quickstart.md").read_text()
    for long, short in SHORTER.items():
        assert long in text, long
        text = text.replace(long, short)
    names: dict[str, Any] = {"__name__": "__main__"}
    done = []
    for kind, code in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            exec(code, names)
            done.append(kind)
            continue
        assert kind == "sh"
        for line in code.splitlines():
            words = shlex.split(line)
            if words[0] == "featlab":
                result = CliRunner().invoke(main, words[1:], catch_exceptions=False)
                assert result.exit_code in ((0, 1, 3) if words[1] == "verify" else (0,)), result.output
                done.append(words[1])
            else:  # setting up: these tests would not run without it
                assert words in (["make", "install"], ["source", ".venv/bin/activate"])
    assert done == ["python"] * 4 + ["claims", "show", "verify", "python"]
    assert names["history"].gamma.dims == ("seed", "step", "class", "filter")
    assert names["history"].rho.dims == ("seed", "step", "class", "filter", "sample")
    assert set(names["history"].attrs) >= ATTRIBUTES
    assert names["diagram"].done.all() and names["verdict"].id == "lazy_or_rich"
    written = {"growth.png", "phase.png", "verdicts/lazy_or_rich.json", "verdicts/lazy_or_rich.png"}
    assert all((tmp_path / name).stat().st_size > 1000 for name in written)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.slow
def test_the_parts_of_ones_own_run(checked):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "own_task.md").read_text(), re.DOTALL)
    assert "testing.check_rotation" in blocks[-1]
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in blocks if checked else blocks[:-1]:
        exec(code.replace("steps=200", "steps=200" if checked else "steps=20"), names)
    history = names["history"]
    assert history.drift.dims == ("seed", "step", "row") and history.attrs["space"] == "Span"
    assert (history.train_loss[:, -1] < history.train_loss[:, 0]).all()
    if checked:
        assert (history.clean_test_error[:, -1] < 0.1).all()


def test_the_clocks_of_the_guide_can_be_written_down():
    (code,) = re.findall(r"```python\n(half = .*?)```", (DOCS / "guide.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {"fl": fl}
    exec(code, names)
    assert len(fl.probes.as_probe(names["probes"][-1]).variables) == 2


# ---- Slow: the site itself


class Resources(HTMLParser):
    """What a page loads by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        loads = tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "object")
        loads |= tag == "link" and given.get("rel") not in ("index", "search", "next", "prev", "canonical")
        for key in ("src", "srcset", "href", "data"):
            if loads and given.get(key):
                self.found.append(given[key])


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_outside():
    done = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr  # -W: a warning is an error
    html = DOCS / "_build" / "html"
    pages = sorted(html.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        reader = Resources()
        reader.feed(page.read_text())
        for link in reader.found:
            outside = re.match(r"(\w+:)?//", link)
            assert not outside, f"{page}: {link}"
            assert link.startswith("data:") or (page.parent / link.split("?")[0].split("#")[0]).exists(), link
    for sheet in html.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet
    for name in ("generated/theorems/cao2022_phase", "api/data", "glossary"):
        text = (html / f"{name}.html").read_text()
        assert "math notranslate" in text and "mathjax/tex-chtml.js" in text
