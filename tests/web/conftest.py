"""A real browser and a real server: one of each for all tests of this folder."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = (
    300_000  # ms; only a page that never gets there waits so long: a busy machine may stand still for a minute
)


PICTURE = """    def scene(self):
        return fl.claims.along_the_way(self.experiment(0.4), 100)

    def picture(self):
        return fl.claims.Picture(
            number=lambda experiment: experiment.algorithm.learning_rate / 0.3, symbol=r"\\eta / 0.3",
            below="Slow.", above="Fast.", slider="algorithm.learning_rate", slider_symbol=r"\\eta",
            values=(0.1, 0.2, 0.8), across="data.n", across_symbol="n", across_values=(8, 16),
            shows="train_loss", level=0.5,
        )

"""


class Server:
    """`featlab serve` as its own process, which can be killed and started again on the same port."""

    def __init__(self, folder: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.log = folder / "serve.log"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("featlab")), "serve", "--port", str(self.port)]
        # A server lives long enough for optimised programs to pay.
        settings = {name: value for name, value in os.environ.items() if name != "JAX_DISABLE_MOST_OPTIMIZATIONS"}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=settings
            )
        end = time.monotonic() + 240
        while time.monotonic() < end:
            assert self.process.poll() is None, f"featlab serve ended: {self.log.read_text()[-2000:]}"
            try:
                with urllib.request.urlopen(self.url + "api/catalogue", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(f"featlab serve did not answer in time: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium: the browser tests are skipped; apt-get install chromium")
    sync = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with sync.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=QUIET)
        yield running
        running.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    pytest.importorskip("starlette", reason="no starlette: pip install 'featlab[web]'")
    pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'featlab[web]'")
    serving = Server(tmp_path_factory.mktemp("serve"))
    serving.start()
    yield serving
    serving.kill()


@pytest.fixture(scope="session")
def atlas_page(tmp_path_factory):
    """An atlas of one small theorem that has a picture, as the address of a file."""
    pytest.importorskip("jinja2", reason="no jinja2: pip install 'featlab[web]'")
    from featlab.atlas.atlas import write_atlas
    from featlab.claims.skeleton import write_skeleton

    folder, out = tmp_path_factory.mktemp("claims"), tmp_path_factory.mktemp("atlas")
    path = write_skeleton("quick", folder)
    text = path.read_text()
    for old, new in (("(0.2, 0.1, 0.05))", "(0.8, 0.4, 0.2))"), ("loss: float = 0.3", "loss: float = 0.5")):
        text = text.replace(old, new)
    path.write_text(text.replace("    def assumptions", PICTURE + "    def assumptions"))
    write_atlas(folder=str(folder), out=out, only=["quick"], size="tiny", base_seed=11)
    return (out / "atlas.html").as_uri()


class Visit:
    """Opens pages and writes down what they ask for and complain about."""

    while_dead = (
        "WebSocket connection to",
        "ERR_CONNECTION_REFUSED",
        "ERR_EMPTY_RESPONSE",
        "ERR_CONNECTION_RESET",
    )

    def __init__(self, browser):
        self._browser = browser
        self.contexts = []
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()  # complaints a test provokes

    def context(self, **options):
        made = self._browser.new_context(**options)
        made.set_default_timeout(PATIENCE)
        self.contexts.append(made)
        return made

    def __call__(self, url, context=None, **options):
        page = (context or self.context(**options)).new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda line: self.requests.append(line.url))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(url)
        return page

    def check(self) -> None:
        outside = [url for url in self.requests if urlsplit(url).hostname not in ("127.0.0.1", "", None)]
        assert not outside, f"asked for something outside this machine: {outside}"
        surprising = [text for text in self.complaints if not any(part in text for part in self.expected)]
        assert not surprising, f"the page complained: {surprising}"


@pytest.fixture
def visit(browser):
    visiting = Visit(browser)
    yield visiting
    for context in visiting.contexts:
        context.close()
    visiting.check()
