"""Test: a build that nobody asked anything of builds what is installed, wherever it is made.

Reads the defaults of meson_options.txt, and whether docs/embedding.md says how to ask for the rest.
Prints each finding.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTION = re.compile(r"option\('(\w+)', type: 'feature', value: '(\w+)'")
BUILT = {"tools", "tls", "http", "c"}  # which are installed; the other libraries have no option


def main():
    defaults = dict(OPTION.findall((ROOT / "meson_options.txt").read_text(encoding="utf-8")))
    document = (ROOT / "docs/embedding.md").read_text(encoding="utf-8")
    found = [] if BUILT < defaults.keys() else ["meson_options.txt was not understood"]
    for name, value in defaults.items():
        if name in BUILT:
            if value == "disabled":
                found.append(f"{name} are installed, but not built unless asked for")
        elif value != "disabled":
            found.append(f"{name}: built without having been asked for ({value})")
        elif name != "fuzzers" and f"-D{name}=enabled" not in document:
            found.append(f"docs/embedding.md: say what -D{name}=enabled takes")
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
