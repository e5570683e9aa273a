"""Names of others are text, whatever they look like, and the page has no way to make them more."""

from __future__ import annotations

import re
from collections.abc import Callable

import stories
from conftest import View
from double import PAGE

Show = Callable[..., View]


def test_names_are_shown_as_text(show: Show) -> None:
    view = show("hostile")
    view.look("hostile")
    shown = " ".join(view.rows())
    assert "<img src=x onerror=\"document.title='owned'\">" in shown
    assert "</script><script>alert(1)</script>" in shown
    assert "⟨202e⟩gnp.exe" in shown and "a⟨0000⟩b⟨001b⟩[31mred⟨000d⟩⟨000a⟩Set-Cookie: x" in shown
    assert "(without a name)" in shown and "__proto__" in shown
    assert view.js("return document.querySelectorAll('img, main script, iframe, b b, h1 h1, u, s')"
                   ".length") == 0
    assert "owned" not in view.driver.title.replace("owned'\">", "")
    assert view.complaints() == []


def test_details_of_each_are_shown_as_text(show: Show) -> None:
    view = show("hostile")
    count = view.js("return document.querySelectorAll('.row a').length")
    assert count == len(stories.HOSTILE) + 2
    for index in range(count):
        href = view.js("return document.querySelectorAll('.row a')[arguments[0]].href", index)
        assert href.startswith(view.double.url + "#group=")
        name = view.js("return document.querySelectorAll('.row a')[arguments[0]]"
                       ".querySelector('.name bdi:last-child').textContent", index)
        view.js("location.hash = arguments[0]", href.split("#", 1)[1])
        view.until(lambda: view.text("#detail-title") == " ".join(name.split()), "not opened")
        view.until(lambda: view.texts("#members tr"), f"no members of {name}")
        assert "<b>host</b>⟨202e⟩-000" in view.text("#members")
        assert "<svg onload=alert(1)>0" in view.text("#members")
    assert view.js("return document.querySelectorAll('#detail img, #detail u, td b').length") == 0
    assert view.complaints() == []


def test_groups_whose_names_differ_in_bytes_alone(show: Show) -> None:
    view = show("hostile")
    links = view.js("return [...document.querySelectorAll('.row a')].map((one) => one.hash)")
    assert "#group=%ff%fe%3c%62%3e" in links and "#group=%ff%fd%3c%62%3e" in links
    view.world.groups = [group for group in view.world.groups if group.name != b"\xff\xfd<b>"]
    view.publish()
    links = view.js("return [...document.querySelectorAll('.row a')].map((one) => one.hash)")
    assert "#group=%ff%fe%3c%62%3e" in links and "#group=%ff%fd%3c%62%3e" not in links


def test_a_long_name_takes_no_room_of_others(show: Show) -> None:
    view = show("hostile")
    for width in (360, 1280):
        view.be(width)
        view.frame()
        assert view.js("return document.documentElement.scrollWidth") <= width
    assert view.js("return [...document.querySelectorAll('.row')].every((one) =>"
                   "one.scrollWidth <= one.clientWidth + 1)")


def test_search_for_what_looks_like_a_pattern(show: Show) -> None:
    view = show("hostile")
    view.type_in("#find", "<img")
    view.until(lambda: 0 < len(view.rows()) < 17, "nothing is found")
    view.type_in("#find", ".*[(")
    assert "No group fits “.*[(”" in view.text("#nothing")
    assert view.complaints() == []


def test_the_file_by_itself() -> None:
    page = PAGE.read_text()
    assert len(page.encode()) <= 150 * 1024
    script = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert len(script) == 1 and len(re.findall("<style", page)) == 1
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                 "new Function", "DOMParser", "createContextualFragment", "srcdoc", "import(",
                 "localStorage", "setAttribute(\"style"):
        assert word not in page, word
    assert not re.search(r"\son[a-z]+\s*=\s*[\"']", page.replace(script[0], ""))
    assert not re.search(r"\sstyle\s*=", page.replace(script[0], ""))
    hosts = set(re.findall(r"(?:https?:)?//[\w.-]+", page)) - {"http://www.w3.org"}
    assert hosts == set(), hosts
    assert max(len(line) for line in page.splitlines()) <= 100


def test_the_policy_forbids_what_it_is_to_forbid(show: Show) -> None:
    """The page runs under the policy of its hashes; another script or style does not."""
    view = show("calm")
    view.js("const one = document.createElement('script'); one.textContent = 'window.bad = 1';"
            "document.body.append(one);"
            "const two = document.createElement('style'); two.textContent = 'h1 {color: #010203}';"
            "document.body.append(two)")
    assert view.js("return window.bad") is None
    assert view.js("return getComputedStyle(document.querySelector('h1')).color") != "rgb(1, 2, 3)"
    assert len(view.complaints()) == 2
