"""Clicks, keys, search and links."""

from __future__ import annotations

from collections.abc import Callable

from conftest import View
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

Show = Callable[..., View]


def is_open(view: View) -> bool:
    return view.is_shown("#detail")


def read(view: View, text: str, where: str = "#detail") -> None:
    view.until(lambda: text in view.text(where), f"{text} is not told")


def test_a_click_tells_all_of_a_group(show: Show) -> None:
    view = show("hang")
    view.click(".row a")
    assert view.driver.current_url.endswith("#group=trainer")
    read(view, "it hangs: somebody is held up for")
    told = view.text("#detail")
    assert "rank 617 (host rack3-gpu-077, pid 4617, label trainer-617, silent for 0.4 s)" in told
    assert "Round 8,812 call all_gather_obj" in told
    assert "called by ranks 0–616, 618–1023 waits for rank 617" in told
    assert (view.texts("#members tr")[0] ==
            "617 ! is waited for rack3-gpu-077 4617 trainer-617 400 ms")
    assert len(view.texts("#members tr")) == 100
    assert view.attribute("#map", "aria-label") == "1,024 ranks: 1,023 waiting, 1 missing"
    view.look("group")
    view.click("#members-more")
    assert len(view.texts("#members tr")) == 600
    view.click("#close")
    assert not is_open(view) and view.focus() == "trainer"
    assert "#" not in view.driver.current_url


def test_members_are_looked_for_by_host_and_by_the_picture(show: Show) -> None:
    view = show("hang", "#group=trainer")
    read(view, "1,024", "#members-count")
    view.type_in("#member-find", "gpu-077")
    assert view.text("#members-count") == "8 of 1,024"
    assert view.texts("#members tr td:first-child")[0] == "617"
    canvas = view.driver.find_element("css selector", "#map")
    shape = view.js("return document.querySelector('#map').shape")
    size = view.js("const box = document.querySelector('#map').getBoundingClientRect();"
                   "return [box.width, box.height]")
    x = (9 % shape["across"]) * shape["edge"] + 2 - size[0] // 2
    y = (9 // shape["across"]) * shape["edge"] + 2 - size[1] // 2
    ActionChains(view.driver).move_to_element_with_offset(canvas, int(x), int(y)).perform()
    read(view, "rank 9: waiting, waits for others · rack3-gpu-001, pid 4009", "#map-tip")
    ActionChains(view.driver).click().perform()
    assert view.texts("#members tr td:first-child") == ["9"]


def test_the_history_of_a_group_stays_when_it_is_gone(show: Show) -> None:
    view = show("nothing", is_opened=False)
    group = view.world.add("over", 4)
    view.world.note(group, "rank_lost", age_s=90, ranks=[2], cause="closed")
    view.world.groups.clear()
    view.double.publish()
    view.open("#group=over")
    read(view, "There is no group of this name at present")
    assert "gone" in view.text("#where")
    assert "lost rank 2" in view.text("#part-history")
    assert "a restart of the server forgets it" in view.text("#part-history")
    view.look("gone")


def test_a_regroup_candidates_and_receives_are_told(show: Show) -> None:
    view = show("failure")
    sweep = view.world.groups[-1]
    sweep.candidates = [{"rank": 4, "state": "live", "host": "spare-1", "pid": 71, "label": "",
                         "process": "p", "silence_s": 0.1, "world_size": 16, "standby": False,
                         "waits_for": "regroup", "age_s": 40.0, "left_s": 9e6}]
    view.publish()
    assert "1 candidate" in view.row("research / sweep")
    view.open("#group=sweep&namespace=research")
    read(view, "Regroup to 16 ranks")
    read(view, "Candidates: 1")
    assert "4 of 16 spare-1 71" in view.text("#part-candidates")
    assert "no deadline a regroup" in view.text("#part-candidates")
    view.open("#group=trainer")
    read(view, "The last round that failed")


def test_the_details_follow_what_happens(show: Show) -> None:
    view = show("hang", "#group=trainer")
    read(view, "it hangs")
    view.world.groups[16].work(8813)
    view.publish()
    view.until(lambda: "it hangs" not in view.text("#detail"), "the details stay")
    assert "works" in view.text("#where")


def test_marked_text_is_not_taken_away(show: Show) -> None:
    view = show("hang", "#group=trainer")
    read(view, "it hangs")
    view.js("const range = document.createRange();"
            "range.selectNodeContents(document.querySelector('#part-why .words'));"
            "getSelection().removeAllRanges(); getSelection().addRange(range)")
    view.world.groups[16].work(8813)
    view.publish()
    asked = len(view.double.asked)
    view.until(lambda: len(view.double.asked) > asked, "nothing is asked again")
    view.frame()
    assert "it hangs" in view.js("return getSelection().toString()")


def test_a_link_opens_its_group_and_back_closes_it(show: Show) -> None:
    view = show("hang", "#group=rollout&namespace=research")
    assert view.text("#detail-title") == "rollout"
    read(view, "rank 40 (host infer-005")
    view.driver.execute_script("location.hash = 'group=shards'")
    view.until(lambda: view.text("#detail-title") == "shards", "another link opens nothing")
    read(view, "19 ~ silent", "#members")
    view.driver.back()
    view.until(lambda: view.text("#detail-title") == "rollout", "back goes nowhere")
    view.click("#close")
    assert not is_open(view)


def test_a_link_is_copied_without_anything_secret(show: Show) -> None:
    view = show("hang", "#group=rollout&namespace=research")
    view.click("#copy")
    view.until(lambda: view.text("#copy") == "Copied", "it is not copied")
    assert view.driver.current_url == view.double.url + "#group=rollout&namespace=research"


def test_keys_go_through_the_groups(show: Show) -> None:
    view = show("hang")
    view.press(Keys.ARROW_DOWN)
    assert view.focus() == "trainer"
    view.press(Keys.ARROW_DOWN, "j", "k", Keys.ARROW_DOWN)
    assert view.focus() == "research / reward"
    view.press(Keys.END)
    assert view.focus() == view.rows()[-1]
    view.press(Keys.HOME)
    assert view.focus() == "trainer"
    view.press(Keys.ENTER)
    view.until(lambda: is_open(view), "Enter opens nothing")
    view.press(Keys.ESCAPE)
    assert not is_open(view) and view.focus() == "trainer"


def test_keys_reach_every_group_of_many(show: Show) -> None:
    view = show("many")
    assert len(view.rows()) < 60
    view.press(Keys.END)
    view.press(Keys.ARROW_DOWN, Keys.END)
    assert view.focus() == "job-099/trainer"
    view.js("window.scrollTo(0, 0)")
    view.frame()
    assert view.focus() == "job-099/trainer", "the focus is lost with its row"
    view.press(Keys.ARROW_UP)
    assert view.focus() == "job-098/trainer"


def test_search_by_group_namespace_and_host(show: Show) -> None:
    view = show("hang")
    view.press("/")
    assert view.focus() == "find"
    view.press("SHARD")
    view.until(lambda: view.rows() == ["shards"], "a name is not found")
    view.press(Keys.ESCAPE)
    assert len(view.rows()) > 9
    view.type_in("#find", "research")
    view.until(lambda: len(view.rows()) == 3, "a namespace is not found")
    view.type_in("#find", "infer-011")
    view.until(lambda: view.rows() == ["research / rollout"], "a host is not found")
    assert "Processes on such hosts: 7" in view.text("#found")
    view.look("search")
    view.type_in("#find", "nobody has this")
    assert "No group fits “nobody has this”" in view.text("#nothing")
    assert not view.is_shown("#found")


def test_enter_in_the_search_opens_the_first(show: Show) -> None:
    view = show("hang")
    view.press("/", "rew", Keys.ENTER)
    view.until(lambda: view.text("#detail-title") == "reward", "Enter opens nothing")


def test_buttons_choose_which_groups_are_shown(show: Show) -> None:
    view = show("hang")
    view.click("#chips [data-filter=trouble]")
    assert view.rows() == ["trainer", "research / rollout"]
    assert view.attribute("#chips [data-filter=trouble]", "aria-pressed") == "true"
    view.click("#chips [data-filter=well]")
    assert "trainer" not in view.rows()


def test_the_order_is_held_under_a_pointer(show: Show) -> None:
    view = show("calm")
    before = view.rows()
    row = view.driver.find_element("css selector", ".row:nth-child(3)")
    ActionChains(view.driver).move_to_element(row).perform()
    view.world.groups[10].wait([5], for_s=30)
    view.publish()
    assert view.rows() == before and view.attribute("#verdict", "data-mood") == "bad"
    assert view.is_shown("#hold")
    view.click("#hold")
    view.until(lambda: view.rows()[0] == "trainer/pp10", "the order stays")


def test_the_keys_are_explained(show: Show) -> None:
    view = show("calm")
    view.press("?")
    assert "go through the groups" in view.text("#help")
    view.press(Keys.ESCAPE)
    assert not view.is_shown("#help")
