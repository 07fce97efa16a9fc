"""Connections that ask for nothing are closed: half a request, however slow, must not hold a place for ever."""

from __future__ import annotations

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0  # for a whole request to arrive


class ImpatientProtocol(H11Protocol):
    """uvicorn's protocol of one connection, which it leaves open until a first request has come."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self._patience = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def connection_lost(self, exc):
        self._patience.cancel()
        super().connection_lost(exc)

    def _give_up(self):
        """Close it, unless a request has come; one that has become a websocket is another protocol's."""
        if self.cycle is None and self.transport.get_protocol() is self:
            self.transport.close()
