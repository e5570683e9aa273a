"""Keys on a server of Muster's, by the names that stores of ``torch.distributed`` have."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Union

from muster._comparing import compare_set
from muster.compat._errors import raises_runtime_errors
from muster.store import Store

Text = Union[str, bytes]


class KeyStore:
    """What is at ``.store`` of a group that ``create`` has made in a program without torch.

    The keys are those of the server's namespace, as they are: :class:`muster.Store` and programs of
    C++ see the same ones.
    """

    __slots__ = ("_each", "_store", "_timeout")

    def __init__(self, store: Store, timeout: float) -> None:
        self._store = store
        self._each = self._timeout = timedelta(seconds=timeout)

    @property
    def session(self) -> Store:
        return self._store

    @property
    def timeout(self) -> timedelta:
        """Of ``get`` and ``wait``."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    @raises_runtime_errors
    def set(self, key: Text, value: Text) -> None:
        self._store.set(key, value, timeout=self._each)

    @raises_runtime_errors
    def get(self, key: Text) -> bytes:
        """Waits until the key exists. Errors: TimedOut."""
        return self._store.get(key, timeout=self._timeout)

    @raises_runtime_errors
    def add(self, key: Text, amount: int) -> int:
        return self._store.add(key, amount, timeout=self._each)

    @raises_runtime_errors
    def compare_set(self, key: Text, expected_value: Text, desired_value: Text) -> bytes:
        """Sets an absent key where "" is expected. Returns the value that is there afterwards; of
        an absent key ``expected_value``."""
        expected, desired = _bytes_of(expected_value), _bytes_of(desired_value)
        return compare_set(self._store, key, expected, desired, self._each)

    @raises_runtime_errors
    def append(self, key: Text, value: Text) -> None:
        self._store.append(key, value, timeout=self._each)

    @raises_runtime_errors
    def delete_key(self, key: Text) -> bool:
        """Returns whether it existed."""
        return self._store.remove(key, timeout=self._each)

    @raises_runtime_errors
    def check(self, keys: Sequence[Text]) -> bool:
        """Whether all exist now."""
        return all(self._store.multi_exists(keys, timeout=self._each))

    @raises_runtime_errors
    def wait(self, keys: Sequence[Text], timeout: timedelta | None = None) -> None:
        """Waits until all keys exist. Errors: TimedOut."""
        self._store.wait(keys, timeout=self._timeout if timeout is None else timeout)

    @raises_runtime_errors
    def multi_get(self, keys: Sequence[Text]) -> list[bytes]:
        """Waits until all keys exist."""
        until = time.monotonic() + self._timeout.total_seconds()
        while True:
            self._store.wait(keys, timeout=max(until - time.monotonic(), 0.0))
            found = self._store.multi_get(keys, timeout=self._each)
            values = [value for value in found if value is not None]
            if len(values) == len(found):
                return values

    @raises_runtime_errors
    def multi_set(self, keys: Sequence[Text], values: Sequence[Text]) -> None:
        self._store.multi_set(list(zip(keys, values)), timeout=self._each)

    @raises_runtime_errors
    def num_keys(self) -> int:
        return sum(1 for _ in self._store.keys(timeout=self._each))

    def __repr__(self) -> str:
        return f"<muster.compat KeyStore at {self._store.address}>"


def _bytes_of(text: Text) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)

