"""The notebooks of docs/notebooks: saved with their outputs, on featlab's public names alone, and they run."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import featlab as fl

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
# Each document, by words of its title, and the notebook that teaches it.
TOPICS = {
    "1_benign_overfitting": "Demystifying Optimization and Generalization of Deep Learning",
    "2_multi_task_and_in_context": "Feature learning theory in multi-task and in-context learning",
    "3_how_the_theory_works": "How Feature Learning Theory Works?",
    "4_features_from_inputs": "A Theoretical Analysis on Feature Learning in Neural Networks",
    "5_one_gradient_step": "A Theory of Non-Linear Feature Learning with One Gradient Step",
}
PACKAGES = {"featlab", "numpy", "matplotlib", "xarray"}
LARGEST = 400_000  # bytes of a notebook with its figures
MOST_SECONDS = 300  # a minute on two cores, with room for busy ones
RUN = """
import json, sys
cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
names = {"__name__": "__main__"}
for number, cell in enumerate(cells, 1):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
"""
notebooks = pytest.mark.parametrize("name", TOPICS)


def read(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def of_kind(name, kind):
    return [cell for cell in read(name)["cells"] if cell["cell_type"] == kind]


def code(name):
    return [ast.parse(source(cell)) for cell in of_kind(name, "code")]


def nodes(name, kind) -> list[Any]:
    return [node for tree in code(name) for node in ast.walk(tree) if isinstance(node, kind)]


def outputs(name):
    return [output for cell in of_kind(name, "code") for output in cell["outputs"]]


def test_every_document_has_its_notebook_and_every_notebook_its_document():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(TOPICS)
    for name, title in TOPICS.items():
        opening = " ".join(source(read(name)["cells"][0]).split())
        assert title in opening and "**Question.**" in opening


@notebooks
def test_a_notebook_is_well_formed(name):
    notebook = read(name)
    assert notebook["nbformat"] == 4 and notebook["nbformat_minor"] >= 5
    assert notebook["metadata"]["kernelspec"]["language"] == "python"
    cells = notebook["cells"]
    assert 8 <= len(cells) <= 15
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert {cell["cell_type"] for cell in cells} == {"markdown", "code"}
    assert all(source(cell).strip() for cell in cells)
    text = [source(cell) for cell in of_kind(name, "markdown")]
    assert text[0].startswith("# ") and sum(one.count("\n# ") for one in text) == 0
    assert all(one.count("$") % 2 == 0 for one in text) and sum(one.count("$") for one in text) > 40


@notebooks
def test_a_notebook_is_saved_as_it_ran(name):
    """From top to bottom, without an error or a warning, with its figures as PNG."""
    assert [cell["execution_count"] for cell in of_kind(name, "code")] == [*range(1, len(code(name)) + 1)]
    kinds = {output["output_type"] for output in outputs(name)}
    assert "error" not in kinds and kinds <= {"stream", "execute_result", "display_data"}
    assert all(output["name"] == "stdout" for output in outputs(name) if output["output_type"] == "stream")
    figures = [output["data"]["image/png"] for output in outputs(name) if "image/png" in output.get("data", {})]
    assert len(figures) >= 2 and all(figure.startswith("iVBORw0KGgo") for figure in figures)  # PNG in base64
    assert (FOLDER / f"{name}.ipynb").stat().st_size < LARGEST


@notebooks
def test_a_notebook_imports_few_packages_and_names_no_place_of_one_machine(name):
    packages = {alias.name.partition(".")[0] for node in nodes(name, ast.Import) for alias in node.names}
    packages |= {str(node.module).partition(".")[0] for node in nodes(name, ast.ImportFrom)}
    assert "featlab" in packages and packages <= PACKAGES
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    without_figures = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"(?<![\w.])/(home|root|work|tmp|usr|Users|opt|mnt|var)/", without_figures)


def chain(node):
    """The names of fl.a.b..., as far as it goes, or nothing."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return names[::-1] if isinstance(node, ast.Name) and node.id == "fl" else []


@notebooks
def test_a_notebook_uses_public_names_that_exist(name):
    used = {tuple(chain(node)) for node in nodes(name, ast.Attribute)} - {()}
    assert len(used) > 10
    for names in used:
        thing = fl
        for one in names:
            assert not one.startswith("_"), names
            thing = getattr(thing, one)


@notebooks
def test_a_notebook_asserts_what_it_says_and_ends_in_exercises(name):
    assert len(nodes(name, ast.Assert)) >= 5
    ending = source(read(name)["cells"][-1])
    exercises = re.findall(r"^(\d)\. ", ending.partition("## Exercises")[2], re.MULTILINE)
    assert [int(number) for number in exercises] == [*range(1, len(exercises) + 1)] and len(exercises) in (3, 4)


@notebooks
def test_the_links_and_claims_of_a_notebook_exist(name):
    text = "\n".join(source(cell) for cell in read(name)["cells"])
    for link in re.findall(r"\]\(([^)]+)\)", "\n".join(source(cell) for cell in of_kind(name, "markdown"))):
        assert (FOLDER / link).is_file(), link
    known = fl.claims.find_claims()
    named = set(re.findall(r"[`\"]([a-z]+20\d\d_\w+|lazy_or_rich|growth_laws)[`\"]", text))
    assert named and named <= set(known)


@pytest.mark.slow
@notebooks
def test_a_notebook_runs(name, tmp_path):
    """Its cells one after the other in a process of their own; what they assert holds."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(FOLDER / f"{name}.ipynb")],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    printed = "".join("".join(one["text"]) for one in outputs(name) if one["output_type"] == "stream")
    assert done.stdout.count("\n") == printed.count("\n")  # as much as is saved
    assert not list(tmp_path.iterdir())  # and nothing is left behind
