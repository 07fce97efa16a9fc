"""Every claim verified twice in one process: the second time all programs are compiled, and none may hang.

Programs that wait for their compiler hardly ever run side by side; compiled ones would. A process that makes no
progress for five minutes ends with exit code 4, and one that outlives that is killed here.
"""

import json
import subprocess
import sys

import pytest

from featlab.claims import find_claims
from featlab.claims.deciding import EXPLORING

AT_MOST = 1200.0  # seconds for a process: an answer takes a few minutes at most, a hang is for ever
WORST = ("huang2024_contrastive", "bu2024_concepts")  # most programs that were once started side by side
TWICE = """
import json, sys
import featlab as fl
from featlab.engine.progress import watchdog

with watchdog(5.0, kept="nothing was to be kept"):
    for _ in range(int(sys.argv[3])):
        verdict = fl.verify(sys.argv[1], sys.argv[2], base_seed=int(sys.argv[4]))
        print(json.dumps([[check.name, check.measured, check.status()] for check in verdict.checks]), flush=True)
"""


def verified(name, size, times):
    command = [sys.executable, "-c", TWICE, name, size, str(times), str(EXPLORING)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=AT_MOST)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", find_claims())
def test_a_claim_is_verified_twice_in_one_process(name):
    first, second = verified(name, "smoke", 2)
    assert first == second and first


@pytest.mark.slow
@pytest.mark.parametrize("name", WORST)
def test_the_worst_are_verified_many_times(name):
    first, *others = verified(name, "smoke", 20)
    assert len(others) == 19 and all(other == first for other in others)
