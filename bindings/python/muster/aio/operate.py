"""What operators change on a running server, for asyncio."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from muster._calls import Timeout
from muster._keywords import names_keywords
from muster.aio._derived import OperatorCalls
from muster.operate import Setting, SettingValue, raw_value, setting_of, time_left


@names_keywords
class Operator(OperatorCalls):
    """As :class:`muster.operate.Operator`: ``store.operate``."""

    __slots__ = ("_handle",)
    _instead = "it belongs to a store of this process. Use the store.operate of each process"

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    async def set_setting(
        self, name: str, value: SettingValue | timedelta, *, timeout: Timeout = None
    ) -> Setting:
        """As the blocking call."""
        began = time.monotonic()
        (setting,) = await self.settings(name, timeout=timeout)
        raw = raw_value(setting, value)
        pending = self._handle.set_setting(name, raw, time_left(timeout, began))
        changed: Setting = await self._then(pending, setting_of)
        return changed
