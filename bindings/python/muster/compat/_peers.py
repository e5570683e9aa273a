"""Whether a server of TCPStore listens where one of Muster's is expected.

Such a server says nothing to a client of Muster: it closes the connection, or waits for more. So it
is asked in its own protocol, but only where no server of Muster's has answered in time.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time

from muster.compat._errors import as_runtime_error
from muster.errors import MusterError, ProtocolBroken, TimedOut, Unavailable
from muster.store import Store

_MAGIC_OF_MUSTER = b"\x8dMSTR"
_VALIDATE = b"\x00\xce\xf7\x85\x3c"
_ECHO = b"MSTR"  # src/wire/foreign.cpp has these bytes, too
_NUMBER_MAX = 1 << 32
_PATIENCE_S = 0.5
_FIRST_ATTEMPT_S, _ATTEMPT_S = 0.3, 2.0


def _answer(host: str, port: int, request: bytes, size: int) -> bytes | None:
    """The first bytes that come back in time; None: nobody listens."""
    got = b""
    try:
        with socket.create_connection((host, port), _PATIENCE_S) as connection:
            with contextlib.suppress(ConnectionError, TimeoutError):
                connection.sendall(request)
                while len(got) < size:
                    more = connection.recv(size - len(got))
                    if not more:
                        break
                    got += more
    except OSError:
        return None
    return got


def speaks_tcpstore(host: str, port: int) -> bool:
    """Asks for a number of keys, of each version, and for an echo. A server of Muster's that has
    yet to begin will know these requests, and takes nobody for a stranger."""
    for request, size in (
        (b"\x06", 8), (_VALIDATE + b"\x0d" + _ECHO, 4), (_VALIDATE + b"\x07", 8),
    ):
        answer = _answer(host, port, request, size)
        if answer is None or answer.startswith(_MAGIC_OF_MUSTER):
            return False
        if size == 4 and answer == _ECHO:
            return True
        if size == len(answer) == 8 and struct.unpack("<q", answer)[0] in range(_NUMBER_MAX):
            return True
    return False


class _Question:
    """What ``speaks_tcpstore`` finds, not waited for beyond a deadline: the look-up of a name and a
    server that answers slowly may take longer."""

    def __init__(self, host: str, port: int) -> None:
        self.is_tcpstore = False
        self._thread = threading.Thread(target=self._ask, args=(host, port), daemon=True)
        self._thread.start()

    def _ask(self, host: str, port: int) -> None:
        self.is_tcpstore = speaks_tcpstore(host, port)

    def is_answered_by(self, until: float) -> bool:
        self._thread.join(max(until - time.monotonic(), 0))
        return not self._thread.is_alive()


def await_muster(host: str, port: int, until: float) -> None:
    """Returns when a server of Muster's answers, or when it is not known what listens: then whoever
    joins there learns why that fails; or shortly before ``until``, of ``time.monotonic``.

    errors  ProtocolBroken: TCPStore listens
    """
    address = f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
    attempt = _FIRST_ATTEMPT_S
    question: _Question | None = None
    while time.monotonic() + attempt + _PATIENCE_S < until:
        try:
            Store(address, role="observer", connect_timeout=attempt).close()
            return
        except (Unavailable, TimedOut, ProtocolBroken):
            question = question or _Question(host, port)
            if question.is_answered_by(until - _PATIENCE_S):
                if question.is_tcpstore:
                    raise as_runtime_error(_is_tcpstore(address)) from None
                question = None
        except MusterError:
            return
        attempt = _ATTEMPT_S


def _is_tcpstore(address: str) -> ProtocolBroken:
    detail = (
        "TCPStore of PyTorch listens there: rank 0 uses the class that this one stands for. All "
        "ranks must use muster.compat.vllm: call its patch() there, too"
    )
    return ProtocolBroken(
        f"create at {address}: {detail}", code="protocol_error", number=45, operation="create",
        where=address, happened="no", decided_by="client", detail=detail, rank_numbers=[0],
    )
