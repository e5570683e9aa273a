"""Muster: processes that serve and train large models find each other, form groups, and exchange
metadata.

    store = muster.Store("127.0.0.1:29400")
    group = muster.StatelessProcessGroup(store, "tp0", rank, world_size)
    everybody = group.all_gather_obj({"rank": rank, "port": 8000 + rank})

Read :mod:`muster.store` first, then :mod:`muster.group`. :mod:`muster.aio` has the same calls for
asyncio, :mod:`muster.codecs` says how objects travel, :mod:`muster.errors` what goes wrong.
docs/python.md is the guide.
"""

from muster import _core, errors
from muster.codecs import JSON, MSGPACK, PICKLE, RAW, BytesLike, Codec
from muster.errors import *  # noqa: F403
from muster.group import Counters, Member, Received, Recovered, StatelessProcessGroup, Watch
from muster.operate import Operator, Setting
from muster.server import Server
from muster.store import (
    Compared, IoThread, KeyInfo, KeyPage, Limits, Process, Store, Subject, WhoAmI,
)

_core.refuse_subinterpreters()

__version__ = _core.version

__all__ = [
    *errors.__all__,
    "JSON", "MSGPACK", "PICKLE", "RAW", "BytesLike", "Codec", "Compared", "Counters", "IoThread",
    "KeyInfo", "KeyPage", "Limits", "Member", "Operator", "Process", "Received", "Recovered",
    "Server", "Setting", "StatelessProcessGroup", "Store", "Subject", "Watch", "WhoAmI",
]
