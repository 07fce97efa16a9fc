"""Places are for those who use them: half a request is cut off, and who is silent makes room."""

import asyncio
import socket
import threading
import time

import pytest
import uvicorn

from featlab.web import _impatient, _server


@pytest.fixture
def tiny(monkeypatch):
    """A server of one word, that waits half a second for a request."""
    monkeypatch.setattr(_impatient, "REQUEST_SECONDS", 0.5)

    async def app(scope, receive, send):
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await asyncio.sleep(1.5)
            await send({"type": "websocket.send", "text": "late"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    address = socket.socket()
    address.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, http=_impatient.ImpatientProtocol, lifespan="off", log_level="error")
    )
    thread = threading.Thread(target=lambda: server.run(sockets=[address]), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield address.getsockname()[1]
    server.should_exit = True
    thread.join(20)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Sl"])
def test_half_a_request_is_cut_off(tiny, sent):
    with socket.create_connection(("127.0.0.1", tiny), timeout=20) as half:
        half.sendall(sent)
        assert half.recv(99) == b""  # closed, long before the time limit of this socket


def test_whole_requests_and_websockets_are_not(tiny):
    from websockets.sync.client import connect

    with socket.create_connection(("127.0.0.1", tiny), timeout=20) as whole:
        for _ in range(2):
            whole.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"ok"):
                answer += whole.recv(999)
            assert b"200" in answer
            time.sleep(0.7)
    with connect(f"ws://127.0.0.1:{tiny}/") as browser:
        assert browser.recv(timeout=20) == "late"


class Browser:
    """One that says nothing, or one word now and then."""

    def __init__(self, every=None):
        self.every, self.closed, self.told = every, None, []

    async def accept(self):
        pass

    async def receive_text(self):
        await asyncio.sleep(self.every or 1000)
        return "{}"

    async def send_text(self, text):
        self.told.append(text)

    async def send_json(self, message):
        self.told.append(message["text"])

    async def close(self, code):
        self.closed = code


def test_who_is_silent_makes_room_and_nobody_else(monkeypatch):
    monkeypatch.setattr(_server, "MOST_CLIENTS", 2)
    monkeypatch.setattr(_server, "IDLE_SECONDS", 0.5)

    async def crowd():
        playground = _server.Playground()
        playground.workers = {}
        silent, lively, early, late = Browser(), Browser(every=0.05), Browser(), Browser(every=0.05)
        talks = [asyncio.ensure_future(playground.talk(one)) for one in (silent, lively)]
        await asyncio.sleep(0.1)
        talks.append(asyncio.ensure_future(playground.talk(early)))  # nobody has been silent for long yet
        await asyncio.sleep(0.7)
        talks.append(asyncio.ensure_future(playground.talk(late)))
        await asyncio.sleep(0.2)
        inside = len(playground.clients)
        for one in talks:
            one.cancel()
        return silent.closed, lively.closed, early.told, late.closed, inside

    thread_found = []
    thread = threading.Thread(target=lambda: thread_found.append(asyncio.run(crowd())))
    thread.start()
    thread.join(60)
    ((silent, lively, early, late, inside),) = thread_found
    assert silent == 1013 and lively is None and late is None and inside == 2
    assert "full" in early[0]
