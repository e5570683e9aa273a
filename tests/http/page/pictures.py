"""Makes the pictures of the page for the documents: pictures.py FOLDER

Each is of a story of the double, so that anybody can make them again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import stories
from conftest import View, start_browser
from double import Double
from small_png import smaller
from world import World

# name -> story, fragment, width, height, colours, steps of the story
PICTURES = {
    "page-hang-light": ("hang", "", 1280, 760, "light", 150),
    "page-hang-dark": ("hang", "#group=trainer", 1280, 760, "dark", 2),
    "page-failure-dark": ("failure", "", 1280, 760, "dark", 150),
    "page-phone": ("hang", "", 360, 740, "light", 2),
}
BYTES_MAX = 150 * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    driver = start_browser()
    try:
        for name, (story, fragment, width, height, scheme, steps) in PICTURES.items():
            world = World()
            moves = stories.STORIES[story](world)
            next(moves)
            double = Double(world)
            view = View(driver, double, moves)
            view.be(width, height, color_scheme=scheme)
            view.open(fragment)
            view.go_on(steps)
            if fragment:
                view.until(lambda: view.text("#part-history"), "no details")
            view.js("document.activeElement.blur()")
            time.sleep(0.5)
            path = folder / f"{name}.png"
            path.write_bytes(smaller(driver.get_screenshot_as_png()))
            print(f"{path}: {path.stat().st_size} bytes")
            assert path.stat().st_size <= BYTES_MAX, "too large for a document"
            double.stop()
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
