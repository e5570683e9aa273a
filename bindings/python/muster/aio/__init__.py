"""The same calls for asyncio: ``await store.get("key")``.

Names, arguments, results and errors are those of :mod:`muster.store` and :mod:`muster.group`.
Cancelling the task that awaits a call cancels the call: it raises :class:`CallCancelled`, an
``asyncio.CancelledError`` that says what became of it. Objects belong to no loop; each call belongs
to the loop that awaits it.
"""

from muster.aio._calls import CallCancelled
from muster.aio.group import StatelessProcessGroup
from muster.aio.operate import Operator
from muster.aio.store import Store

__all__ = ["CallCancelled", "Operator", "StatelessProcessGroup", "Store"]
