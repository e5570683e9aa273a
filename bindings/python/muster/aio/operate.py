"""What a running server is told to change, for asyncio."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from muster import _core
from muster._keywords import names_keywords
from muster.aio._calls import here
from muster.operate import Setting, SettingValue, raw_value, setting_of, time_left

if TYPE_CHECKING:
    from muster.store import Timeout


@names_keywords
class Operator:
    """As :class:`muster.Operator`: ``store.operate``."""

    __slots__ = ("_handle",)

    def __init__(self, handle: _core.Store) -> None:
        self._handle = handle

    async def settings(self, name: str = "", *, timeout: Timeout = None) -> list[Setting]:
        settings: list[Setting] = await here().run(
            self._handle.settings_async, name, timeout,
            value_of=lambda all_raw: [setting_of(raw) for raw in all_raw],
        )
        return settings

    async def set_setting(
        self, name: str, value: SettingValue | timedelta, *, timeout: Timeout = None
    ) -> Setting:
        began = time.monotonic()
        (setting,) = await self.settings(name, timeout=timeout)
        raw = raw_value(setting, value)
        left = time_left(timeout, began)
        changed: Setting = await here().run(
            self._handle.set_setting_async, name, raw, left, value_of=setting_of
        )
        return changed

    async def end_session(self, session: int, reason: str, *, timeout: Timeout = None) -> None:
        await here().run(self._handle.end_session_async, session, reason, timeout)

    async def end_sessions_of(
        self, process: str, reason: str, *, timeout: Timeout = None
    ) -> int:
        count: int = await here().run(
            self._handle.end_sessions_of_async, process, reason, timeout
        )
        return count

    async def drain(
        self, time_max: Timeout = None, reason: str = "", *, timeout: Timeout = None
    ) -> int:
        count: int = await here().run(self._handle.drain_async, time_max, reason, timeout)
        return count

    async def cancel_drain(self, *, timeout: Timeout = None) -> None:
        await here().run(self._handle.cancel_drain_async, timeout)
