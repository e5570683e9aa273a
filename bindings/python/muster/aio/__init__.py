"""The same calls for asyncio: ``await store.get("key")``.

Names, arguments, results and errors are those of :mod:`muster.store` and :mod:`muster.group`.
Cancelling the task that awaits a call cancels the call. The ``asyncio.CancelledError`` that is
raised then says what became of it:

- ``error``: how the call ended, a :class:`~muster.MusterError`; None: it has worked
- ``value``: what it has given, if it has worked; else None
- ``in_doubt``: whether it may have changed what it was to change, and this is not known

The exception is asyncio's own, so ``asyncio.timeout``, task groups and the like work as with other
calls. Objects belong to no loop; each call belongs to the loop that awaits it.
"""

from muster.aio.group import StatelessProcessGroup
from muster.aio.operate import Operator
from muster.aio.store import Store

__all__ = ["Operator", "StatelessProcessGroup", "Store"]
