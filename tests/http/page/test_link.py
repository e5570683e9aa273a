"""The connection to the server: lost, refused, stale, paused; the session of a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from conftest import View

Show = Callable[..., View]


def state(view: View, wanted: str) -> None:
    view.until(lambda: view.attribute("#link", "data-state") == wanted, f"it is never {wanted}")


def test_a_lost_stream_is_followed_again(show: Show) -> None:
    view = show("calm")
    view.double.drop()
    state(view, "reconnecting")
    assert "All 12 groups are well" in view.text("h1")
    state(view, "live")
    view.world.groups[0].wait([1], for_s=20)
    view.publish()
    assert view.rows()[0] == "trainer/pp0"


def test_a_stream_that_says_nothing_is_stale(show: Show) -> None:
    view = show("calm", is_opened=False)
    view.double.comment_ms = 200
    view.open()
    view.double.is_mute = True
    view.double.refuses = 500
    state(view, "refused")
    view.until(lambda: "Nothing has been heard from the server since" in view.text("#banner"),
               "no word of it")
    assert view.js("return document.documentElement.classList.contains('stale')")
    assert re.fullmatch(r"All 12 groups are well, as of \d\d:\d\d:\d\d", view.text("h1"))
    assert view.driver.title.startswith("(stale)")
    view.look("stale")
    view.double.is_mute, view.double.refuses = False, 0
    state(view, "live")
    assert not view.is_shown("#banner")


def test_what_waits_does_not_come_to_hang_while_nothing_is_heard(show: Show) -> None:
    view = show("nothing")
    view.world.add("slow", 8).wait([3], for_s=5)
    view.publish()
    view.double.refuses = 500
    view.double.drop()
    view.until(lambda: view.driver.title.startswith("(stale)"), "it is never stale")
    assert "waits" in view.row("slow") and "hangs" not in view.row("slow")


def test_the_server_is_gone(show: Show) -> None:
    view = show("calm")
    view.double.stop()
    state(view, "reconnecting")
    state(view, "stale")
    assert "stale since" in view.text("#link")


def test_there_are_too_many_viewers(show: Show) -> None:
    view = show("calm", is_opened=False)
    view.double.refuses = 503
    view.driver.get(view.double.url)
    state(view, "full")
    assert "no more viewers" in view.text("#banner")
    view.look("full")
    view.double.refuses = 0
    state(view, "live")


def test_it_is_paused_while_it_is_hidden(show: Show) -> None:
    view = show("calm", is_opened=False)
    view.double.comment_ms = 200
    view.open()
    assert view.double.viewers == 1
    hide = ("Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
            "document.dispatchEvent(new Event('visibilitychange'))")
    view.js(hide, True)
    state(view, "paused")
    view.until(lambda: view.double.viewers == 0, "it still reads")
    view.js(hide, False)
    state(view, "live")
    assert view.double.viewers == 1


def test_log_in_and_out(show: Show) -> None:
    view = show("hang", token="muster-http-x", is_opened=False)
    view.driver.get(view.double.url)
    view.type_in("[name=token]", "muster-http-x")
    view.driver.find_element("css selector", "button").click()
    state(view, "live")
    path, head = view.double.forms[-1]
    assert path == "/login" and head["origin"] + "/" == view.double.url
    assert "muster-http-x" not in view.driver.current_url
    assert "muster-http-x" not in view.driver.page_source
    view.until(lambda: view.is_shown("#log-out"), "there is no way out")
    view.leave(view.driver.find_element("css selector", "#log-out").click)
    view.until(lambda: view.driver.find_elements("css selector", "[name=token]"), "still in")
    path, head = view.double.forms[-1]
    assert path == "/logout" and head["sec-fetch-site"] == "same-origin"
    assert head["origin"] + "/" == view.double.url


def test_a_session_that_is_over_says_so(show: Show) -> None:
    view = show("hang", token="t", is_opened=False)
    view.driver.get(view.double.url)
    view.type_in("[name=token]", "t")
    view.driver.find_element("css selector", "button").click()
    state(view, "live")
    view.double.cookies.clear()
    view.double.drop()
    state(view, "out")
    assert "The session is over" in view.text("#banner")
    view.look("out")
    view.leave(view.driver.find_element("css selector", "#banner button").click)
    view.until(lambda: view.driver.find_elements("css selector", "[name=token]"), "no form")


def test_nothing_to_log_out_from_without_a_session(show: Show) -> None:
    assert not show("hang").is_shown("#log-out")


def test_the_link_survives_the_log_in(show: Show) -> None:
    view = show("hang", token="t", is_opened=False)
    view.driver.get(view.double.url + "#group=trainer")
    view.js("sessionStorage.setItem('muster-link', location.hash)")
    view.type_in("[name=token]", "t")
    view.driver.find_element("css selector", "button").click()
    view.until(lambda: view.text("#detail-title") == "trainer", "the link is lost")


def test_a_change_without_a_member_leaves_it_as_it_is(show: Show) -> None:
    view = show("hang")
    before = view.text("#limits")
    view.world.groups[0].work(9999)
    view.publish()
    assert view.text("#limits") == before and "9,999" in view.row("trainer/tp0")


def test_numbers_that_a_newer_server_has_are_left_out(show: Show) -> None:
    view = show("calm", is_opened=False)
    view.world.server = {**view.world.server, "another": {"thing": 1}}
    group = view.world.groups[0]
    group.state, group.states = "pondering", ["thinking"] * group.size
    view.world.note(group, "abducted")
    view.double.publish()
    view.open(f"#group={group.text}")
    assert view.rows() and json.dumps(view.complaints()) == "[]"
