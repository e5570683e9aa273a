"""torchrun's rendezvous at a server of Muster's: ``--rdzv-backend muster``.

    torchrun --nnodes 1:2 --rdzv-backend muster --rdzv-endpoint HOST:PORT --rdzv-id ID ...

Torch finds this by the entry point "torchrun.handlers" from 2.5 on; before, :mod:`muster.torch.run`
registers it. The state of the rendezvous, and what agents tell each other, are keys of the
namespace "torchrun/ID": the server outlives every agent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousHandler,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend

from muster.torch.store import Store

__all__ = ["create_handler", "get_handler", "register"]

NAME = "muster"
DEFAULT_PORT = 29400


class Handler(RendezvousHandler):  # type: ignore[misc]
    """Torch's own dynamic rendezvous, at a store of Muster's."""

    def __init__(self, inner: Any, store: Store) -> None:
        self._inner = inner
        self._store = store

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

    def num_nodes_waiting(self) -> int:
        return int(self._inner.num_nodes_waiting())

    def get_run_id(self) -> str:
        return str(self._inner.get_run_id())

    def shutdown(self) -> bool:
        return bool(self._inner.shutdown())


def create_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The rendezvous of an agent, from what torchrun has been given.

    ``--rdzv-endpoint`` is an address as ``muster.Store`` takes it; the port may be left out, and
    is 29400 then. ``--rdzv-conf`` may have ``namespace``, ``read_timeout`` (60 s),
    ``credential_file``, ``certificate_file``, ``certificate_key_file``, ``authorities_file``,
    ``server_name``, and what torch's own dynamic rendezvous takes, such as ``join_timeout`` and
    ``last_call_timeout``.

    errors  ValueError (no endpoint), RendezvousConnectionError
    """
    if not params.endpoint:
        raise ValueError("--rdzv-backend muster needs --rdzv-endpoint HOST:PORT")
    names = (
        "credential_file", "certificate_file", "certificate_key_file", "authorities_file",
        "server_name",
    )
    try:
        store = Store(
            with_port(params.endpoint),
            namespace=params.get("namespace", f"torchrun/{params.run_id}"),
            timeout=float(params.get("read_timeout", 60)),
            **{name: params.get(name, "") for name in names},
        )
    except RuntimeError as error:
        raise RendezvousConnectionError(str(error)) from error
    backend = C10dRendezvousBackend(store, params.run_id)
    return Handler(dynamic_rendezvous.create_handler(store, backend, params), store)


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
