"""The list of deliberate defects fits the code; `python tests/defects.py` puts each of them to the test."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("defects", HERE / "defects.py")
LISTED = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(LISTED)


@pytest.mark.slow
def test_every_defect_names_tests_that_pytest_finds():
    named = sorted({f"tests/{defect.test}" for defect in LISTED.DEFECTS})
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *named]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_every_defect_still_has_its_place_and_its_test():
    assert len(LISTED.DEFECTS) >= 10
    for defect in LISTED.DEFECTS:
        text = (HERE.parent / "src" / "featlab" / defect.file).read_text()
        assert defect.right in text, defect.what
        file, _, test = defect.test.partition("::")
        assert f"def {test.split('[')[0]}(" in (HERE / file).read_text(), defect.what
