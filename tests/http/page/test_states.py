"""What an operator sees of each state, and what the page says of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from conftest import View

Show = Callable[..., View]


def colour_at(view: View, name: str, share: float) -> list[int]:
    """Of the picture of ranks in the row of that group, at a share of its width, near its foot."""
    found = view.js("""
        const row = [...document.querySelectorAll(".row")].find((one) =>
          one.querySelector(".name").innerText.replace(/\\s+/g, " ").endsWith(arguments[0]));
        const canvas = row.querySelector("canvas");
        const x = Math.min(canvas.width - 1, Math.round(canvas.width * arguments[1]));
        return [...canvas.getContext("2d").getImageData(x, canvas.height - 4, 1, 1).data];
        """, name, share)
    return list(found[:3])


def colour_of(view: View, state: str) -> list[int]:
    text = view.js("return getComputedStyle(document.documentElement)"
                   ".getPropertyValue(arguments[0]).trim()", f"--{state}")
    return [int(text[index:index + 2], 16) for index in (1, 3, 5)]


def test_a_hang_is_seen_at_a_glance(show: Show) -> None:
    view = show("hang")
    assert re.fullmatch(r"trainer has waited 4 min \d+ s for rank 617", view.text("h1"))
    assert view.driver.title.startswith("(2) rack7-head")
    row = view.row("trainer")
    assert "hangs" in row and "waits for rank 617 in all_gather_obj, round 8,812" in row
    assert "1,023 ranks wait" in row and re.search(r"since \d\d:\d\d:\d\d", row)
    assert "has not called round 8812" in row
    assert view.rows()[:2] == ["trainer", "research / rollout"]
    view.look("hang")


def test_one_rank_of_a_thousand_is_seen_in_the_picture(show: Show) -> None:
    view = show("hang")
    assert colour_at(view, "trainer", 617.5 / 1024) == colour_of(view, "missing")
    assert colour_at(view, "trainer", 0.2) == colour_of(view, "waiting")


def test_one_rank_of_sixteen_thousand_is_seen_in_the_picture(show: Show) -> None:
    view = show("nothing")
    view.world.add("all", 16384).wait([9000], for_s=20)
    view.publish()
    assert colour_at(view, "all", 9000.5 / 16384) == colour_of(view, "missing")


def test_who_waits_becomes_a_hang_after_ten_seconds_without_a_message(show: Show) -> None:
    view = show("nothing")
    view.world.add("slow", 8).wait([3], for_s=8.2)
    view.publish()
    assert view.attribute("#verdict", "data-mood") == "good"
    assert "waits" in view.row("slow")
    view.until(lambda: view.attribute("#verdict", "data-mood") == "bad", "it never hangs")
    assert "hangs" in view.row("slow")


def test_an_idle_receive_is_no_hang(show: Show) -> None:
    view = show("nothing")
    view.world.add("weights", 8).idle().since -= 600_000
    view.publish()
    assert "idle" in view.row("weights")
    assert view.attribute("#verdict", "data-mood") == "good"


def test_a_group_that_forms(show: Show) -> None:
    view = show("nothing")
    view.world.add("young", 48).form(range(20, 48), 2)
    view.world.add("old", 96).form([40, 41, 42, 43, 88], 74)
    view.publish()
    assert "forms" in view.row("young") and "20 of 48 ranks" in view.row("young")
    assert "not formed" in view.row("old")
    assert "waits for ranks 40–43, 88 to join · 91 ranks wait" in view.row("old")
    assert "old has not formed for 1 min" in view.text("h1")
    view.look("forming")


def test_a_failure_that_nobody_regroups(show: Show) -> None:
    view = show("failure")
    assert "trainer lost ranks 24–31 1 min" in view.text("h1")
    assert "failed" in view.row("trainer") and "lost ranks 24–31" in view.row("trainer")
    assert colour_at(view, "trainer", 26.2 / 512) == colour_of(view, "lost")
    assert "regroups" in view.row("research / rollout")
    assert "waits for rank 4 to regroup" in view.row("research / sweep")
    view.look("failure")


def test_a_round_that_failed(show: Show) -> None:
    view = show("nothing")
    group = view.world.add("trainer", 8)
    group.state, group.failure = "failed", group.error("timed_out", [3, 4])
    group.why = group.failure["message"]
    view.publish()
    assert "the last round failed: timed_out, ranks 3–4 · barrier" in view.row("trainer")
    assert "trainer has a round that failed 1 h 0 min ago" in view.text("h1")


def test_who_is_waited_for_may_be_silent(show: Show) -> None:
    view = show("nothing")
    group = view.world.add("trainer", 64).wait([9], for_s=20)
    group.states[9] = "silent"
    group.waited = [9]
    group.states[20] = "left"
    view.publish()
    assert "waits for rank 9" in view.row("trainer")
    assert colour_at(view, "trainer", 9.2 / 64) == colour_of(view, "silent")
    assert view.texts("#legend li:not([hidden])") == ["waiting", "silent", "left"]


def test_groups_for_which_there_was_no_place(show: Show) -> None:
    view = show("calm", is_opened=False)
    view.world.groups_left_out = 31
    view.double.publish()
    view.open()
    assert view.text("#summary") == "12 groups, 1,792 ranks; 31 are not shown."


def test_all_is_well(show: Show) -> None:
    view = show("calm")
    assert view.text("h1") == "All 12 groups are well"
    assert view.text("#summary") == "12 groups, 1,792 ranks."
    assert view.driver.title == "rack7-head · muster"
    assert colour_at(view, "trainer/pp0", 0.008) == colour_of(view, "live")
    view.go_on()
    view.look("calm")


def test_no_groups_at_all(show: Show) -> None:
    view = show("nothing")
    assert view.text("h1") == "No groups"
    assert "No groups yet" in view.text("#nothing")
    assert view.text("#prefixes") == "No keys."
    view.look("nothing")


def test_a_story_from_forming_to_the_next_epoch(show: Show) -> None:
    view = show("forming")
    seen = []
    for _ in range(70):
        view.go_on()
        seen.append(view.text(".row .badge"))
    said = [word for word, before in zip(seen, ["", *seen]) if word != before]
    assert said == ["forms", "works", "waits", "failed", "regroups", "works"]
    assert "lost rank 5" in view.text("#happened")
    assert "heartbeat" in view.text("#lanes")


def test_groups_come_and_go(show: Show) -> None:
    view = show("calm")
    assert "trainer/pp4" in view.rows()
    view.world.groups = [group for group in view.world.groups if group.name != "trainer/pp4"]
    view.world.add("another", 4)
    view.publish()
    assert "trainer/pp4" not in view.rows() and "another" in view.rows()
    assert view.text("#summary") == "12 groups, 1,668 ranks."


def test_the_last_hour_by_causes(show: Show) -> None:
    view = show("nothing")
    group = view.world.add("trainer", 8)
    for age_s, cause in ((3000, "closed"), (600, "closed"), (20, "heartbeat"), (4000, "closed")):
        view.world.note(group, "rank_lost", age_s=age_s, ranks=[3], cause=cause)
    view.world.note(group, "rank_left", age_s=30, ranks=[1])
    view.publish()
    assert view.texts(".lane") == ["closed 2", "heartbeat 1"]
    first = view.texts("#happened li")[0]
    assert "trainer lost rank 3" in first and "gpu-000, pid 4003" in first
    assert "silent past the session timeout" in first
    assert len(view.texts("#happened li")) == 3
    event = view.world.note(group, "round_failed", age_s=5, ranks=[2], code="timed_out")
    view.publish()
    assert "a round failed: timed_out, rank 2" in view.texts("#happened li")[0]
    event["count"] = 7
    view.publish()
    assert "(7 times)" in view.texts("#happened li")[0]
    assert view.texts(".lane") == ["closed 2", "heartbeat 1", "round failed 7"]


def test_what_was_before_the_start_is_not_known(show: Show) -> None:
    view = show("nothing", is_opened=False)
    view.world.known_for_s = 1800
    view.double.publish()
    view.open()
    since = time.strftime("%H:%M:", time.localtime(time.time() - 1800))
    assert f"known since {since}" in view.text("#known")
    assert 29.5 < float(view.attribute("#lanes .blank", "width")) < 30.5


def test_limits_sessions_keys_and_waits(show: Show) -> None:
    view = show("failure")
    memory = view.text("#limits li")
    assert memory.startswith("memory ▲ 993 MiB of 1.0 GiB")
    assert view.attribute("#limits .meter", "aria-valuenow") == "97"
    assert "log lines 40,211, no limit" in view.text("#limits")
    assert "sessions 1,264 away 2 keys 6,277" in view.text("#figures")
    assert view.texts("#prefixes li")[0] == "rendezvous/ 4,210 keys 1.8 MiB"
    assert "research / sweep-17/" in view.text("#prefixes")
    assert view.text("#waits-note") == "p50 1.3 ms · p99 451 ms"
    assert len(view.texts("#plot i")) == 12
    view.click("#depth")
    view.js("const one = document.querySelector('#depth'); one.value = '2';"
            "one.dispatchEvent(new Event('change'))")
    view.until(lambda: "rendezvous/part1/" in view.text("#prefixes"), "no deeper prefixes")


def test_a_server_that_is_drained_says_so(show: Show) -> None:
    view = show("calm")
    view.world.server = {**view.world.server, "draining": True}
    view.publish()
    assert "is being drained" in view.text("#server")
