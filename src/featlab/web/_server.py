"""The playground's server: a page, a websocket for what is live, files to keep. It runs no code of a browser's."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import json
import socket
import sys
import time
import traceback
from collections.abc import Hashable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from featlab import atlas
from featlab.core.validation import InputError

PORT = 8123
_HERE = Path(__file__).parent
_CHARTS = [Path(atlas.__file__).with_name(name) for name in ("charts.js", "heat.js")]
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".nc": "application/x-netcdf",
    ".py": "text/x-python",
    ".toml": "application/toml",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
ANY_ADDRESS = "any address"
MOST_CLIENTS = 64
IDLE_SECONDS = 300.0  # after which a silent client gives its place to another, where all are taken
MOST_FILES = 4  # being made at once
MOST_BYTES = 64_000  # of a message
MOST_WAITING = 256  # messages that a browser has not taken yet
FILE_SECONDS = 120.0


class Client:
    """One browser tab: what it asked for last, and what it has not been sent yet."""

    def __init__(self, number: int):
        self.number = number
        self.outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MOST_WAITING)
        self.current: dict[str, Any] = {}  # "train", "diagram" -> the number of its job
        self.heard = time.monotonic()
        self.dismissed = asyncio.Event()

    def key(self, what: str) -> tuple[int, str]:
        return self.number, what


class Playground:
    """The catalogue, the processes that compute, and everybody who is connected."""

    def __init__(self, folder: str | None = None):
        from featlab.web._catalogue import Catalogue

        self.folder = folder
        self.catalogue = Catalogue(folder)
        self.page = json.dumps(self.catalogue.page(), allow_nan=False)
        self.clients: dict[int, Client] = {}
        self.files: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count()

    async def begin(self) -> None:
        """Start the processes: one for curves and files, one for diagrams."""
        from featlab.engine.compiled import keep_compiled_programs
        from featlab.web._workers import Worker

        keep_compiled_programs()
        loop = asyncio.get_running_loop()

        def deliver(key: Hashable, job: Any, message: dict[str, Any]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._deliver, key, job, message)

        self.workers = {"train": Worker(self.folder, deliver, warm=True), "diagram": Worker(self.folder, deliver)}

    def end(self) -> None:
        for worker in self.workers.values():
            worker.close()

    def _deliver(self, key: Any, job: Any, message: dict[str, Any]) -> None:
        number, what = key
        if what == "file":
            waiting = self.files.get(number)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
            return
        client = self.clients.get(number)
        if client is None or client.current.get(what) != job:  # of a job that another one has replaced
            return
        try:
            client.outbox.put_nowait({**message, "job": job})
        except asyncio.QueueFull:  # a browser that takes nothing gets nothing more
            self.workers[what].stop(key)

    async def talk(self, browser: Any) -> None:
        """The life of one websocket."""
        from starlette.websockets import WebSocketDisconnect

        if len(self.clients) >= MOST_CLIENTS and not self._dismissed():
            await browser.accept()
            await browser.send_json(
                {"kind": "problem", "job": None, "text": "This playground is full; try later."}
            )
            await browser.close(1013)
            return
        await browser.accept()
        client = Client(next(self._numbers))
        self.clients[client.number] = client
        sender = asyncio.create_task(_sending(browser, client))
        try:
            while (text := await _heard(browser, client)) is not None:
                client.heard = time.monotonic()
                await self._answer(client, text)
            await browser.close(1013)
        except (WebSocketDisconnect, RuntimeError, KeyError):  # gone, or not text
            pass
        finally:
            sender.cancel()
            self.clients.pop(client.number, None)
            for what, worker in self.workers.items():
                worker.stop(client.key(what))

    def _dismissed(self) -> bool:
        """Whether there was somebody silent for long, whose place is free now."""
        silent = min(self.clients.values(), key=lambda client: client.heard)
        if time.monotonic() - silent.heard < IDLE_SECONDS:
            return False
        silent.dismissed.set()
        del self.clients[silent.number]
        return True

    async def _answer(self, client: Client, text: str) -> None:
        job = None
        try:
            asked = _parsed(text)
            job, what = asked.get("job"), asked.get("do")
            if what == "stop":
                for kind, worker in self.workers.items():
                    worker.stop(client.key(kind))
                return
            if what not in ("train", "diagram", "side"):
                raise InputError(
                    f"There is nothing to do called {str(what)[:40]!r}; there are train, diagram, side, stop."
                )
            if isinstance(job, bool) or not isinstance(job, int):
                raise InputError("A job must have a whole number.")
            # The parts check their numbers in Python, which is no work for the loop that serves everybody.
            message = await asyncio.to_thread(self._side, asked.get("setting"))
            if what in ("train", "side"):
                await client.outbox.put({**message, "job": job})
            if what != "side":
                client.current[what] = job
                self.workers[what].begin(client.key(what), job, what, asked["setting"])
        except InputError as error:
            await client.outbox.put({"kind": "problem", "job": job, "text": str(error)})

    def _side(self, setting: Any) -> dict[str, Any]:
        from featlab.web._jobs import side

        return side(self.catalogue.read(setting))

    async def file(self, name: str, setting: dict[str, Any]) -> bytes:
        """A file to keep, or one sentence."""
        if len(self.files) >= MOST_FILES:
            raise InputError("Too many files are being made at once; try again in some seconds.")
        number = next(self._numbers)
        self.files[number] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.to_thread(self.catalogue.read, setting)
            self.workers["train"].begin((number, "file"), number, "file", setting, name)
            while True:
                message = await asyncio.wait_for(self.files[number], FILE_SECONDS)
                if message["kind"] == "problem":
                    raise InputError(message["text"])
                if message["kind"] == "file":
                    return message["content"]
                self.files[number] = asyncio.get_running_loop().create_future()
        except TimeoutError:
            raise InputError(f"The file was not ready after {FILE_SECONDS:.0f} s; choose fewer steps.") from None
        finally:
            self.workers["train"].stop((number, "file"))
            del self.files[number]


async def _heard(browser: Any, client: Client) -> str | None:
    """The next message; None when the client has to go."""
    listening = asyncio.ensure_future(browser.receive_text())
    leaving = asyncio.ensure_future(client.dismissed.wait())
    try:
        await asyncio.wait({listening, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return await listening if listening.done() else None
    finally:
        listening.cancel()
        leaving.cancel()


async def _sending(browser: Any, client: Client) -> None:
    try:
        while True:
            await browser.send_text(json.dumps(await client.outbox.get(), allow_nan=False))
    except (TypeError, ValueError):  # not plain data: close, so that the browser starts again
        traceback.print_exc()
        await browser.close(1011)


def _parsed(text: str) -> dict[str, Any]:
    def refused(word: str):
        raise InputError(f"{word} is no number.")

    if len(text) > MOST_BYTES:
        raise InputError(f"A message has at most {MOST_BYTES} characters, got {len(text)}.")
    try:
        asked = json.loads(text, parse_constant=refused)
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError("A message must be JSON.") from None
    if not isinstance(asked, dict):
        raise InputError("A message must be a JSON object.")
    return asked


def application(folder: str | None = None, hosts: tuple[str, ...] = _LOOPBACK) -> Any:
    """The ASGI application; `hosts` are the names it answers to."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route, WebSocketRoute

    playground = Playground(folder)
    static = {path.name: path for path in [*(_HERE / "static").iterdir(), *_CHARTS] if path.is_file()}

    def guarded(answer):
        async def checked(request):
            if not _is_expected(request.headers, hosts):
                return Response("This server does not answer to that name.", 421, _HEADERS)
            response = await answer(request)
            response.headers.update(_HEADERS)
            return response

        return checked

    async def page(request):
        return _content(static["index.html"])

    async def script(request):
        path = static.get(request.path_params["name"])
        return Response("There is no such file.", 404) if path is None else _content(path)

    async def catalogue(request):
        return Response(playground.page, media_type="application/json")

    async def download(request):
        if not _is_own(request.headers):
            return Response("Only this server's own page can ask for files.", 403)
        name = request.path_params["name"]
        try:
            content = await playground.file(name, dict(request.query_params))
        except InputError as error:
            return JSONResponse({"problem": str(error)}, 422)
        headers = {"Content-Disposition": f'attachment; filename="featlab-{name}"'}
        return Response(content, 200, headers, _TYPES[Path(name).suffix])

    async def talk(browser):
        if not _is_own(browser.headers) or not _is_expected(browser.headers, hosts):
            await browser.close(1008)  # another site's page
            return
        await playground.talk(browser)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        await playground.begin()
        try:
            yield
        finally:
            playground.end()

    routes = [
        Route("/", guarded(page)),
        Route("/static/{name}", guarded(script)),
        Route("/api/catalogue", guarded(catalogue)),
        Route("/download/{name}", guarded(download)),
        WebSocketRoute("/ws", talk),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.playground = playground
    return app


def _content(path: Path) -> Any:
    from starlette.responses import Response

    return Response(path.read_bytes(), media_type=_TYPES.get(path.suffix, "application/octet-stream"))


def _is_own(headers: Any) -> bool:
    """Whether a request comes from this server's own page, or from no page at all."""
    origin = headers.get("origin")
    same = origin is None or urlsplit(origin).netloc == headers.get("host")
    return same and headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def _is_expected(headers: Any, hosts: tuple[str, ...]) -> bool:
    """Whether a request names a host of ours: a name that someone else's server points here is not one.

    An address is nobody's name, and is expected wherever the server listens beyond loopback.
    """
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name in hosts or ANY_ADDRESS in hosts and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _hosts(host: str) -> tuple[str, ...]:
    """The names that a server which listens at an address answers to."""
    if host in _LOOPBACK:
        return _LOOPBACK
    if _is_address(host) and ipaddress.ip_address(host).is_loopback:
        return (*_LOOPBACK, host)
    return (*_LOOPBACK, host, socket.gethostname(), socket.getfqdn(), ANY_ADDRESS)


def serve(port: int = PORT, host: str = "127.0.0.1", folder: str | None = None) -> None:
    """Serve the playground until interrupted."""
    try:
        import uvicorn
        import websockets as websockets
    except ModuleNotFoundError as error:
        raise InputError(f"featlab serve needs the package {error.name}: pip install 'featlab[web]'.") from None
    address = _bound(host, port)
    hosts = _hosts(host)
    app = application(folder, hosts)
    shown = f"[{host}]" if ":" in host else host
    print(f"featlab: the playground is at http://{shown}:{address.getsockname()[1]} (Ctrl-C ends it)", flush=True)
    if ANY_ADDRESS in hosts:
        print("featlab: everybody who can reach this machine can use it, and its two processes.", file=sys.stderr)
    from featlab.web._impatient import ImpatientProtocol

    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_level="warning",
        ws_max_size=2 * MOST_BYTES,
        timeout_graceful_shutdown=2,
    )
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[address])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    address = socket.socket(family, socket.SOCK_STREAM)
    address.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        address.bind((host, port))
    except (OSError, OverflowError) as error:
        address.close()
        raise InputError(f"The playground cannot listen at {host}:{port} ({error}); try another --port.") from None
    return address
