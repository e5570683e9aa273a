"""A browser, and the page in it, told by a double of the server what a test wants to be shown."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(Path(__file__).parent))

import stories  # noqa: E402
from double import Double  # noqa: E402
from world import World  # noqa: E402

PATIENCE_S = 30.0
PICTURES = os.environ.get("PAGE_PICTURES")


class View:
    """The page in a browser, and what it is told."""

    def __init__(self, driver: webdriver.Chrome, double: Double, moves: Iterator[None]):
        self.driver, self.double, self.world, self.moves = driver, double, double.world, moves

    def open(self, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(self.double.url + fragment)
        self.until(lambda: self.is_live(), "it does not become live")

    def is_live(self) -> bool:
        return self.attribute("#link", "data-state") == "live" and self.frame()

    def frame(self) -> bool:
        """When the next frame is drawn, what was told before is shown."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done()));")
        return True

    def go_on(self, steps: int = 1) -> None:
        """The story goes on, and the page shows it."""
        for _ in range(steps):
            next(self.moves)
            self.publish()

    def publish(self) -> None:
        told = self.count("muster-update")
        if not self.double.publish():
            return
        self.until(lambda: self.count("muster-update") != told, "no update comes")

    def count(self, measure: str) -> int:
        return len(self.durations(measure))

    def durations(self, measure: str) -> list[float]:
        return list(self.js("return performance.getEntriesByName(arguments[0])"
                            ".map((entry) => entry.duration)", measure))

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, holds: Callable[[], Any], otherwise: str) -> Any:
        end = time.monotonic() + PATIENCE_S
        while True:
            found = holds()
            if found:
                return found
            assert time.monotonic() < end, otherwise
            time.sleep(0.02)

    # What is to be seen.

    def text(self, selector: str) -> str:
        """Without what is hidden, in one line."""
        return " ".join(str(self.js("return document.querySelector(arguments[0])?.innerText ?? ''",
                                    selector)).split())

    def texts(self, selector: str) -> list[str]:
        """Of all elements, in the order of the eye."""
        return [" ".join(text.split()) for text in self.js(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((one) => [one.getBoundingClientRect().top, one.innerText])"
            ".sort((a, b) => a[0] - b[0]).map((one) => one[1])", selector)]

    def attribute(self, selector: str, name: str) -> str:
        return str(self.js("return document.querySelector(arguments[0])?.getAttribute(arguments[1])"
                           " ?? ''", selector, name))

    def is_shown(self, selector: str) -> bool:
        return bool(self.js("return document.querySelector(arguments[0])?.checkVisibility() ?? "
                            "false", selector))

    def rows(self) -> list[str]:
        """The names of the groups on the screen, from above."""
        return self.texts(".row .name")

    def row(self, name: str) -> str:
        found = [text for text in self.texts(".row") if f" {name} " in f" {text} "]
        assert found, f"there is no row of {name}"
        return found[0]

    def focus(self) -> str:
        """The group whose row has the focus, or the id of what else has it."""
        return " ".join(str(self.js("const one = document.activeElement;"
                                    "return one.querySelector('.name')?.innerText ?? one.id"))
                        .split())

    # What people do.

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()
        self.frame()

    def click(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()
        self.frame()

    def type_in(self, selector: str, text: str) -> None:
        field = self.driver.find_element("css selector", selector)
        field.send_keys(Keys.CONTROL + "a")
        field.send_keys(text)
        self.frame()

    def leave(self, act: Callable[[], None]) -> None:
        """Acts, and waits for the document that takes the place of this one."""
        self.js("window.isOld = true")
        act()
        self.until(lambda: not self.js("return window.isOld ?? false"), "it is the same document")

    def send_form(self, selector: str, text: str) -> None:
        field = self.driver.find_element("css selector", selector)
        self.leave(lambda: field.send_keys(text + Keys.ENTER))

    def look(self, name: str) -> None:
        """Keeps a picture of it for people to look at, where a folder is given for them."""
        self.frame()
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(PICTURES, f"{name}.png")))

    def be(self, width: int = 1280, height: int = 900, **features: str) -> None:
        """The window's size, and what the user prefers: color_scheme="dark" and so on."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()]})

    def complaints(self) -> list[str]:
        """What the browser has said: refused by the policy, errors of the script."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]


def start_browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--hide-scrollbars", "--lang=en", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    made.set_script_timeout(PATIENCE_S)
    made.set_page_load_timeout(PATIENCE_S)
    return made


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    made = start_browser()
    yield made
    made.quit()


@pytest.fixture
def show(driver: webdriver.Chrome) -> Iterator[Callable[..., View]]:
    """show(STORY, fragment="", token="") opens the page while that story is told."""
    doubles: list[Double] = []

    def start(story: str, fragment: str = "", token: str = "", is_opened: bool = True) -> View:
        world = World()
        moves = stories.STORIES[story](world)
        next(moves)
        doubles.append(Double(world, token=token))
        view = View(driver, doubles[-1], moves)
        view.be()
        view.complaints()
        if is_opened:
            view.open(fragment)
        return view

    yield start
    driver.get("about:blank")
    for double in doubles:
        double.stop()
