"""What the playground's server does with everything a browser, or something worse, may send it."""

import asyncio
import json
import math
import random
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import psutil
import pytest

connect = pytest.importorskip("websockets.sync.client", reason="no websockets: pip install 'featlab[web]'").connect
PATIENCE = 240  # s; the first training of a kind compiles its program
pytestmark = pytest.mark.xdist_group("browser")  # one server for all


@pytest.fixture(scope="session")
def catalogue(server):
    with urllib.request.urlopen(server.url + "api/catalogue") as answer:
        return json.load(answer)


@pytest.fixture(scope="session")
def small(catalogue):
    """A theorem's setting that trains in no time."""
    setting = next(one for one in catalogue["claims"] if one["id"] == "cao2022_phase")["setting"]
    return {**setting, "data.n": 16, "network.width": 8, "steps": 200, "seeds": 2}


def line(server, **options):
    return connect(f"ws://127.0.0.1:{server.port}/ws", **options)


def ask(browser, **message):
    browser.send(json.dumps(message))


def heard(browser, job, until=lambda one: one.get("done") or one["kind"] == "problem"):
    """All messages of a job, up to its last one."""
    found = []
    while not found or not until(found[-1]):
        message = json.loads(browser.recv(timeout=PATIENCE))
        if message["job"] == job:
            found.append(message)
    return found


def test_curves_come_while_training_runs_and_are_those_of_a_run(server, small):
    import featlab as fl
    from featlab.web._catalogue import Catalogue

    with line(server) as browser:
        ask(browser, do="train", job=1, setting=small)
        messages = heard(browser, 1)
        ask(browser, do="train", job=2, setting={**small, "data.snr": 0.3})
        again = [one for one in heard(browser, 2) if one["kind"] == "curves"]
    assert messages[0]["kind"] == "side" and messages[0]["number"] == pytest.approx(16 * 0.4**3 / 2, rel=1e-4)
    curves = [one for one in messages if one["kind"] == "curves"]
    assert len(curves) > 5 and len(again) > 5
    steps = [step for one in curves for step in one["steps"]]
    assert steps == sorted(set(steps)) and [one["from"] for one in curves] == [
        sum(len(before["steps"]) for before in curves[:i]) for i in range(len(curves))
    ]
    request = Catalogue().read(small)
    history = fl.run(request.experiment, request.seeds, progress=False)
    for name in ("train_loss", "test_loss", "signal_learnt", "noise_memorised"):
        end = history[name].isel(step=-1)
        assert curves[-1]["series"][name]["mean"][-1] == pytest.approx(float(end.mean()), rel=2e-3)
        assert curves[-1]["series"][name]["high"][-1] == pytest.approx(float(end.max()), rel=2e-3)


@pytest.mark.slow
def test_a_new_setting_takes_the_place_of_the_old_one(server, small):
    with line(server) as browser:
        for job in range(1, 30):
            ask(browser, do="train", job=job, setting={**small, "data.snr": 0.2 + 0.01 * job})
        messages = heard(browser, 29)
    assert messages[-1]["kind"] == "curves" and messages[-1]["done"]


@pytest.mark.slow
def test_a_diagram_fills_and_has_the_theorems_boundary(server, small):
    with line(server) as browser:
        ask(browser, do="diagram", job=7, setting={**small, "steps": 60})
        messages = heard(browser, 7, until=lambda one: one.get("cells") or one["kind"] == "problem")
        ask(browser, do="stop")
    head = messages[-1]
    assert head["kind"] == "diagram" and all(math.isfinite(value) for _, _, value in head["cells"])
    for n, snr in zip(head["curve"]["x"], head["curve"]["y"]):
        assert n * snr**3 == pytest.approx(2, rel=0.01)


def train_with(setting):
    return f'{{"do": "train", "job": 1, "setting": {setting}}}'


NONSENSE = [
    *["", "{", "[]", "null", "7", '"train"', "{}", '{"do": "train"}', '{"do": "eval", "job": 1}'],
    *['{"do": ["train"]}', '{"do": "train", "job": 1}', '{"do": "train", "job": true}'],
    '{"do": "train", "job": "x", "setting": {}}',
    *map(train_with, ["[]", '{"data.n": NaN}', '{"data.n": 1e999}', '{"data.n": {}}', '{"data.n": 1e18}']),
    *map(train_with, ['{"steps": -5}', '{"claim": "../../etc/passwd"}', '{"data": "Experiment"}']),
    train_with('{"network.activation": "__import__(\'os\').abort()"}'),
    *["[" * 50_000, '{"a":' * 5_000, "x" * 100_000],
    train_with(json.dumps({f"x{i}": i for i in range(500)})),
    train_with(json.dumps({"seeds": 10**400})),
]


@pytest.mark.parametrize("text", NONSENSE, ids=lambda text: text[:40])
def test_nonsense_is_answered_with_one_sentence(server, text):
    with line(server) as browser:
        browser.send(text)
        message = json.loads(browser.recv(timeout=PATIENCE))
    assert message["kind"] == "problem" and 10 < len(message["text"]) < 1000, message
    assert "Traceback" not in message["text"]


@pytest.mark.slow
def test_values_of_every_kind_in_every_field(server, small):
    """Random ones: no answer but a training, a side or a sentence, and the server lives."""
    rng = random.Random(3)
    values = [
        None,
        True,
        "",
        "x",
        "inf",
        "-inf",
        "nan",
        -1,
        0,
        1e-300,
        1e300,
        10**30,
        0.5,
        [],
        {},
        "1e400",
        "é" * 50,
    ]
    with line(server) as browser:
        for job in range(150):
            ask(browser, do="side", job=job, setting={**small, rng.choice(list(small)): rng.choice(values)})
            assert heard(browser, job, until=lambda one: True)[0]["kind"] in ("side", "problem")
        ask(browser, do="train", job=1000, setting=small)
        assert heard(browser, 1000)[-1]["done"]


def test_too_much_work_is_refused_in_one_sentence(server, small):
    heavy = {**small, "data.n": 4096, "network.width": 512, "steps": 20000, "seeds": 16}
    with line(server) as browser:
        ask(browser, do="train", job=1, setting=heavy)
        last = heard(browser, 1)[-1]
    assert last["kind"] == "problem" and "operations" in last["text"]


@pytest.mark.parametrize(
    "name",
    [
        "experiment.toml",
        "script.py",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("data.nc", "figure.svg")),
    ],
)
def test_files_to_keep(server, small, name, tmp_path):
    with urllib.request.urlopen(f"{server.url}download/{name}?{urlencode(small)}", timeout=PATIENCE) as answer:
        content = answer.read()
        assert f"featlab-{name}" in answer.headers["Content-Disposition"]
    (tmp_path / name).write_bytes(content)
    if name == "experiment.toml":
        from featlab.text import load_experiment
        from featlab.web._catalogue import Catalogue

        experiment, settings = load_experiment(tmp_path / name)
        assert experiment == Catalogue().read(small).experiment and settings["seeds"] == 2
    elif name == "data.nc":
        import xarray as xr

        assert xr.open_dataset(tmp_path / name, engine="scipy").sizes["seed"] == 2
    else:
        assert len(content) > 1000


def refusal(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_what_is_not_there_and_who_is_not_meant(server, small):
    assert refusal(server.url + "static/..%2f_server.py")[0] == 404
    assert refusal(server.url + "static/_server.py")[0] == 404
    status, text = refusal(server.url + "download/passwd?" + urlencode(small))
    assert status == 422 and b"There is no file" in text
    status, text = refusal(server.url + "download/script.py?data.n=zero")
    assert status == 422 and b"data.n must be a number" in text
    # A name that someone else's server points at this machine, and another site's page.
    assert refusal(server.url, Host="evil.example")[0] == 421
    with pytest.raises(Exception, match="403|rejected"):
        line(server, additional_headers={"Origin": "http://evil.example"}).recv(timeout=5)
    file = server.url + "download/script.py?" + urlencode(small)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
        status, text = refusal(file, **headers)
        assert status == 403 and b"own page" in text
    assert refusal(file, **{"Sec-Fetch-Site": "same-origin"})[0] == 200


@pytest.mark.parametrize(
    ("listens", "asked", "expected"),
    [
        ("127.0.0.1", "localhost:8123", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "192.168.0.7", False),
        ("127.0.0.2", "127.0.0.2:8123", True),
        ("127.0.0.2", "evil.example", False),
        ("0.0.0.0", "192.168.0.7:8123", True),
        ("0.0.0.0", "[fe80::1]:8123", True),
        ("0.0.0.0", "evil.example", False),
        ("lab.example", "lab.example:80", True),
    ],
)
def test_a_server_answers_to_its_own_names_alone(listens, asked, expected):
    from featlab.web import _server

    assert _server._is_expected({"host": asked}, _server._hosts(listens)) is expected


def test_no_more_files_are_made_at_once_than_the_limit(monkeypatch):
    from featlab.web import _server

    class Busy:
        begin = stop = staticmethod(lambda *arguments: None)

    async def many():
        playground = _server.Playground()
        playground.workers = {"train": Busy}
        setting = {**playground.catalogue.setting("cao2022_phase"), "claim": "cao2022_phase"}
        asked = [playground.file("script.py", setting) for _ in range(_server.MOST_FILES + 3)]
        return await asyncio.gather(*asked, return_exceptions=True), playground.files

    monkeypatch.setattr(_server, "FILE_SECONDS", 0.5)
    with ThreadPoolExecutor(1) as thread:  # the browser's tests leave a loop in this one
        found, left = thread.submit(lambda: asyncio.run(many())).result()
    assert sum("Too many files" in str(one) for one in found) == 3 and not left


def processes(server):
    parent = psutil.Process(server.process.pid)
    return [parent, *parent.children(recursive=True)]


def memory(server):
    """MB of the server, and of all its processes."""
    each = [one.memory_info().rss / 1e6 for one in processes(server)]
    return each[0], sum(each)


@pytest.mark.slow
def test_quick_reconnects_and_twenty_clients_leave_memory_as_it_was(server, small):
    def reconnect(times, job):
        for i in range(times):
            with line(server) as browser:
                if i % 5 == 0:
                    ask(browser, do="train", job=job, setting=small)  # and gone

    def watch(k):
        with line(server) as browser:
            ask(browser, do="train", job=k, setting={**small, "data.snr": 0.2 + 0.02 * k})
            ended.append(heard(browser, k)[-1])

    def together(crowd):
        for one in crowd:
            one.start()
        for one in crowd:
            one.join(2 * PATIENCE)

    ended = []
    reconnect(50, 1)
    together([threading.Thread(target=watch, args=(k,)) for k in range(4)])  # so that each worker has worked
    time.sleep(1)
    before, ports = memory(server), len(processes(server))
    ended.clear()
    crowd = [threading.Thread(target=reconnect, args=(100, k)) for k in range(10)]
    together(crowd + [threading.Thread(target=watch, args=(k,)) for k in range(20)])
    assert len(ended) == 20 and all(one["kind"] == "curves" and one["done"] for one in ended)
    time.sleep(1)
    after = memory(server)
    assert after[0] < before[0] + 25, "the server keeps something of those who left"
    # What a process once used it keeps for later: over four such crowds the two level off at 160 MB together.
    assert after[1] < before[1] + 250, "the workers keep something of those who left"
    assert len(processes(server)) == ports


@pytest.mark.slow
def test_a_process_that_dies_is_replaced_and_those_who_wait_are_told(server, small):
    with line(server) as browser:
        long = {**small, "data.n": 256, "network.width": 32, "steps": 20000, "algorithm.pace": 0.0001}
        ask(browser, do="train", job=1, setting=long)
        begun = heard(browser, 1, until=lambda one: one["kind"] in ("curves", "problem"))[-1]
        assert begun["kind"] == "curves" and not begun["done"]
        workers = [one for one in processes(server)[1:] if "featlab.engine.worker" in " ".join(one.cmdline())]
        assert len(workers) == 2
        for one in workers:
            one.kill()
        last = heard(browser, 1)[-1]
        assert last["kind"] == "problem" and "started again" in last["text"]
        ask(browser, do="train", job=2, setting=small)
        assert heard(browser, 2)[-1]["done"]
