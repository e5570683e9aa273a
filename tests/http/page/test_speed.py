"""How long an update of 10,240 ranks takes. Time depends on the machine: `tools/dev deep` asks."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import pytest
from conftest import View

Show = Callable[..., View]
LIMIT_MS = 50.0
SECONDS = int(os.environ.get("PAGE_SECONDS", "0"))


def cpu_ms(view: View) -> float:
    """Of the page's own thread: script, style, layout and paint."""
    metrics = view.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1000.0 * float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


@pytest.mark.skipif(SECONDS == 0, reason="PAGE_SECONDS says for how long: tools/dev deep page")
@pytest.mark.parametrize("size", [(1920, 1080), (3840, 2160)])
def test_an_update_takes_at_most_50_ms(show: Show, size: tuple[int, int]) -> None:
    view = show("many", is_opened=False)
    view.be(*size)
    view.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    view.open()
    view.go_on(5)
    before, begin, count = cpu_ms(view), time.monotonic(), 0
    while time.monotonic() < begin + SECONDS:
        next(view.moves)
        view.double.publish()
        count += 1
        time.sleep(0.5)
    each = (cpu_ms(view) - before) / count
    script, all_of_it = view.durations("muster-script"), view.durations("muster-update")
    assert len(all_of_it) >= count * 0.9
    print(f"\n{size[0]}x{size[1]}, {count} updates: script median {statistics.median(script):.1f} "
          f"ms, until painted median {statistics.median(all_of_it):.1f} ms, longest "
          f"{max(all_of_it):.1f} ms, thread {each:.1f} ms each")
    assert statistics.median(all_of_it) <= LIMIT_MS
    assert each <= LIMIT_MS
