"""The list of deliberate defects fits the code; `python tests/defects.py` puts each of them to the test."""

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent


def test_every_defect_still_has_its_place_and_its_test():
    spec = importlib.util.spec_from_file_location("defects", HERE / "defects.py")
    defects = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(defects)
    assert len(defects.DEFECTS) >= 10
    for defect in defects.DEFECTS:
        text = (HERE.parent / "src" / "featlab" / defect.file).read_text()
        assert defect.right in text, defect.what
        file, _, test = defect.test.partition("::")
        assert f"def {test.split('[')[0]}(" in (HERE / file).read_text(), defect.what
