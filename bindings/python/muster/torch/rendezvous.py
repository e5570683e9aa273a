"""torchrun's rendezvous at a server of Muster's: ``--rdzv-backend muster``.

    torchrun --nnodes 1:2 --rdzv-backend muster --rdzv-endpoint HOST:PORT --rdzv-id ID ...

Torch finds this by the entry point "torchrun.handlers" from 2.5 on; before, :mod:`muster.torch.run`
registers it. The state of the rendezvous, and what agents tell each other, are keys of the
namespace "torchrun/ID": the server outlives every agent. The namespace is that of a run
(docs/semantics.md, "Runs"): it is removed with its last agent. When agents have closed the
rendezvous, it is kept closed for a while, so that a late agent does not run the job alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousHandler,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend

from muster.errors import Closed
from muster.torch.store import Store

__all__ = ["create_handler", "get_handler", "register"]

NAME = "muster"
DEFAULT_PORT = 29400
NO_ID = "none"
"""What torchrun gives as the id of a job that has none."""
STAYS_CLOSED_S = 30.0

log = logging.getLogger(__name__)


class Handler(RendezvousHandler):  # type: ignore[misc]
    """Torch's own dynamic rendezvous, at a store of Muster's."""

    def __init__(self, inner: Any, store: Store, keep_closed: Callable[[], None]) -> None:
        self._inner = inner
        self._store = store
        self._keep_closed = keep_closed

    def get_backend(self) -> str:
        return NAME

    @property
    def use_agent_store(self) -> bool:
        return bool(getattr(self._inner, "use_agent_store", False))

    def next_rendezvous(self) -> Any:
        """The next round. Its workers meet at a store that is new: torch would go on with that of
        the last round, whose agent may be gone."""
        if hasattr(self._inner, "_bootstrap_store_info"):
            self._inner._bootstrap_store_info = None
        return self._inner.next_rendezvous()

    def is_closed(self) -> bool:
        return bool(self._inner.is_closed())

    def set_closed(self) -> None:
        self._inner.set_closed()
        self._keep_closed()

    def num_nodes_waiting(self) -> int:
        return int(self._inner.num_nodes_waiting())

    def get_run_id(self) -> str:
        return str(self._inner.get_run_id())

    def shutdown(self) -> bool:
        """Closes the rendezvous, and ends the agent's session."""
        is_closed = bool(self._inner.shutdown())
        if is_closed:
            self._keep_closed()
        self._store.close()
        return is_closed


def create_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The rendezvous of an agent, from what torchrun has been given.

    ``--rdzv-endpoint`` is an address as ``muster.Store`` takes it; the port may be left out, and
    is 29400 then. ``--rdzv-conf`` may have ``namespace``, ``read_timeout`` (60 s),
    ``credential_file``, ``certificate_file``, ``certificate_key_file``, ``authorities_file``,
    ``server_name``, and what torch's own dynamic rendezvous takes, such as ``join_timeout`` and
    ``last_call_timeout``; also ``run``, the name of the run, with which a restarted job says that
    it is not the run that has ended, and ``stays_closed`` (30 s), for how long no agent of an ended
    run enters.

    errors  ValueError (no endpoint, no id), RendezvousConnectionError, RendezvousClosedError (the
            run has ended, or one of another name goes on)
    """
    if not params.endpoint:
        raise ValueError("--rdzv-backend muster needs --rdzv-endpoint HOST:PORT")
    if params.run_id == NO_ID:
        raise ValueError(
            "--rdzv-backend muster needs --rdzv-id ID, which no other job has: two jobs without "
            "one would meet in the same rendezvous"
        )
    files = (
        "credential_file", "certificate_file", "certificate_key_file", "authorities_file",
        "server_name",
    )
    options: dict[str, Any] = {
        "namespace": params.get("namespace", f"torchrun/{params.run_id}"),
        "run": str(params.get("run", "1")),
        "timeout": float(params.get("read_timeout", 60)),
        **{name: params.get(name, "") for name in files},
    }
    address = with_port(params.endpoint)
    stays_closed = float(params.get("stays_closed", STAYS_CLOSED_S))

    def keep_closed() -> None:
        try:
            Store(address, **options, namespace_idle_lifetime=stays_closed).close()
        except RuntimeError as error:
            log.warning("a late agent of %s would find no rendezvous: %s", params.run_id, error)

    try:
        store = Store(address, **options)
    except RuntimeError as error:
        if isinstance(error.__cause__, Closed):
            raise RendezvousClosedError(
                f"{error}; a restarted job needs another name of its run, the same at all of its "
                "agents: --rdzv-conf run=NAME; or another --rdzv-id"
            ) from error
        raise RendezvousConnectionError(str(error)) from error
    backend = C10dRendezvousBackend(store, params.run_id)
    return Handler(dynamic_rendezvous.create_handler(store, backend, params), store, keep_closed)


def with_port(endpoint: str) -> str:
    """An address; of a host alone, with the port at which musterd listens by itself."""
    is_whole = endpoint.startswith("unix:") or endpoint.rpartition(":")[2].isdigit()
    return endpoint if is_whole else f"{endpoint}:{DEFAULT_PORT}"


def get_handler() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """For the entry point: what torchrun registers."""
    return create_handler


def register() -> None:
    """Makes ``muster`` known to torchrun in this process."""
    rendezvous_handler_registry.register(NAME, create_handler)
