"""compare_set as stores of ``torch.distributed`` have it, on a store of Muster's."""

from __future__ import annotations

from muster.store import Store, Timeout


def compare_set(
    store: Store, key: str | bytes, expected: bytes, desired: bytes, timeout: Timeout = None
) -> bytes:
    """Sets ``key`` to ``desired`` if its value is ``expected``. An empty one also stands for a key
    that is not there, and is tried anew when the key goes in between.

    returns  the value afterwards; of a key that is not there and was expected to be, ``expected``
    errors   as ``Store.compare_set``
    cost     one round trip; two where an empty value is expected and there
    """
    while True:
        applied, current = store.compare_set(key, expected or None, desired, timeout=timeout)
        if not applied and expected == b"" and current == b"":
            applied, current = store.compare_set(key, b"", desired, timeout=timeout)
            if not applied and current is None:
                continue
        if applied:
            return desired
        return expected if current is None else current
