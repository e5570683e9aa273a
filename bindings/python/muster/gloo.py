"""Gloo communicators, for host memory, over TCP; in builds of Muster that have Gloo. docs/gloo.md
tells what holds."""

from __future__ import annotations

from dataclasses import dataclass

from muster import _core
from muster._handles import handle_of
from muster._keywords import names_keywords
from muster.communicator import (
    Communicator, CommunicatorOptions, Reduction, fields_of, scaled_sum,
)
from muster.errors import Unsupported
from muster.group import StatelessProcessGroup

__all__ = ["Communicator", "Options", "Reduction", "create", "is_available", "scaled_sum"]


@names_keywords
@dataclass(frozen=True, kw_only=True)
class Options(CommunicatorOptions):
    """Options of Gloo communicators."""

    interface: str = ""
    """Where this rank listens for the others, such as "eth0". Empty, and no ``address``: the
    address from which it reaches the store's server."""
    address: str = ""
    """The same as an address or a name of this host."""


def is_available() -> bool:
    """Whether this build of Muster has Gloo."""
    return hasattr(_core, "gloo_create")


def create(group: StatelessProcessGroup, options: Options = Options()) -> Communicator:
    """Makes the communicator of a group's epoch: a TCP connection between each two ranks.
    Collective: all ranks of the group call it, and all have it when it returns, or none will.

    errors  TimedOut (``ranks``: those that did not come, or did not finish), RankLost, RankLeft,
            Mismatch (``ranks``: with another Gloo, or an address that the others cannot use),
            InvalidArgument (``ranks``: with an interface or address that does not exist),
            GlooFailed (``ranks``: where; also where another Gloo, such as PyTorch's, is loaded),
            Unsupported (this build has none)
    cost    two round trips, a connection to each other rank, and a thread
    see     docs/gloo.md
    """
    if not is_available():
        detail = "this build of Muster has no Gloo: it takes -Dgloo=enabled, and libgloo"
        raise Unsupported(
            f"gloo.create: {detail}", code="unsupported", number=5, operation="gloo.create",
            detail=detail, happened="no", decided_by="client",
        )
    handle = _core.gloo_create(handle_of(group), fields_of(options, Options, "options"))
    return Communicator._of(handle, (group, options))
