"""Who cannot see it, sees it on a phone, in the dark, or without motion."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import View

Show = Callable[..., View]

AXE = Path(os.environ.get("PAGE_AXE", "/nonexistent"))
VIEWS = {
    "hang": ("hang", ""), "failure": ("failure", ""), "calm": ("calm", ""),
    "nothing": ("nothing", ""), "hostile": ("hostile", ""), "group": ("hang", "#group=trainer"),
    "gone": ("nothing", "#group=x"),
}


@pytest.mark.skipif(not AXE.exists(), reason="there is no axe-core: tools/dev page fetches it")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("name", list(VIEWS))
def test_axe_finds_nothing(show: Show, name: str, width: int, scheme: str) -> None:
    story, fragment = VIEWS[name]
    view = show(story, is_opened=False)
    view.be(width, 1000, color_scheme=scheme)
    view.open(fragment)
    if fragment:
        view.until(lambda: view.text("#part-history"), "no details")
    view.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text()})
    found = view.driver.execute_async_script("""
        const done = arguments[arguments.length - 1];
        axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa",
            "best-practice"]}).then((all) => done(all.violations.map((one) =>
              `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) =>
                node.html.slice(0, 200) + " " + node.failureSummary).join(" | ")}`)));""")
    assert found == []
    view.look(f"{name}-{width}-{scheme}")


def test_a_reader_is_told_of_new_trouble(show: Show) -> None:
    view = show("calm")
    assert view.text("#news") == ""
    view.world.groups[2].wait([9], for_s=11)
    view.publish()
    news = view.js("return document.querySelector('#news').textContent")
    assert "trainer/pp2 hangs: waits for rank 9 in barrier" in news
    assert view.attribute("#news", "aria-live") == "polite"


def test_a_row_says_in_words_what_its_picture_shows(show: Show) -> None:
    view = show("hang")
    assert view.attribute(".row canvas", "aria-hidden") == "true"
    name = view.driver.find_element("css selector", ".row a").accessible_name
    for word in ("hangs", "trainer", "1,024 ranks", "waits for rank 617"):
        assert word in name
    assert view.attribute(".row", "aria-setsize") == "22"
    assert view.attribute(".row", "aria-posinset") == "1"


@pytest.mark.parametrize("story", ["hang", "failure", "hostile", "nothing", "many"])
def test_nothing_is_wider_than_a_phone(show: Show, story: str) -> None:
    view = show(story, is_opened=False)
    for fragment in ("", "#group=trainer"):
        view.be(360, 780)
        view.open(fragment)
        assert view.js("return document.documentElement.scrollWidth") <= 360
    view.be(320, 600)
    view.frame()
    assert view.js("return document.documentElement.scrollWidth") <= 320


def test_the_pictures_change_with_the_scheme(show: Show) -> None:
    view = show("calm")
    ask = ("const canvas = document.querySelector('.row canvas');"
           "return [...canvas.getContext('2d').getImageData(2, canvas.height - 4, 1, 1).data]")
    light = view.js(ask)
    view.be(color_scheme="dark")
    view.until(lambda: view.js(ask) != light, "the picture stays light")


def test_who_wants_no_motion_has_none(show: Show) -> None:
    view = show("calm", is_opened=False)
    view.be(reduced_motion="reduce")
    view.open()
    view.double.refuses = 500
    assert view.js("return document.getAnimations().length") == 0


def test_a_wall_screen(show: Show) -> None:
    view = show("hang", is_opened=False)
    view.be(3840, 2160)
    view.open()
    assert view.js("return parseFloat(getComputedStyle(document.documentElement).fontSize)") > 16
    view.look("wall")


def test_a_tab_reaches_everything(show: Show) -> None:
    view = show("hang", "#group=trainer")
    view.until(lambda: view.texts("#members tr"), "no members")
    view.js("document.activeElement.blur()")
    reached = set()
    for _ in range(70):
        view.press("\ue004")
        reached.add(view.focus())
    assert {"find", "help-button", "copy", "close", "member-find", "members-more"} <= reached
    assert "trainer" in reached
