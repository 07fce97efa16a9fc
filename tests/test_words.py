"""Phrases that a native speaker would not write stay out of code, pages and error messages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"src": (".py", ".js", ".html"), "docs": (".py", ".md"), "examples": (".py",), "benchmarks": (".py",)}
MADE = {"_build", "generated", "jupyter_execute"}
PHRASES = (
    r"(?<!\bquite )\bso many(?!\s+(?:that|as)\b)",
    r"\bis something else\b",
    r"\b[Ww]hoever\b",
    r"\bis no one\b",
    r"\bis none\b(?!\s+of\b)",
    r"\bas they come\b",
    r"\bof its own kind\b",
    r"\bhad better\b",
    r"\bwho takes turns\b",
)


def pages():
    yield ROOT / "README.md"
    for folder, endings in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in endings and not MADE & set(file.parts):
                yield file


def found(text, phrase):
    """The lines with a phrase; `x is None` is Python."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{number}: {line.strip()}" for number, line in lines if re.search(phrase, line)]


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_page_has_a_phrase_that_nobody_says(phrase):
    lines = {str(file.relative_to(ROOT)): found(file.read_text(), phrase) for file in pages()}
    assert {file: there for file, there in lines.items() if there} == {}


def test_the_phrases_are_found_where_they_stand():
    assert found("a run of so many steps\nso many that it fails", PHRASES[0]) == ["1: a run of so many steps"]
    assert found("if x is None:\nand it is none.", PHRASES[4]) == ["2: and it is none."]
