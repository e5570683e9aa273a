"""Every script is named in docs/semantics.md, and every script named there exists."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
scripts = {path.stem for path in (root / "tests/script/core").glob("*.txt")}
beginnings = "|".join(sorted({name.split("_")[0] for name in scripts}))
text = (root / "docs/semantics.md").read_text()
named = set(re.findall(rf"`((?:{beginnings})_[a-z_]+)`", text))
error_codes = set(re.findall(r"^  (\w+) = \d+,", (root / "include/muster/error.h").read_text(), re.M))
for name in sorted(scripts - named):
    print(f"tests/script/core/{name}.txt is not named in docs/semantics.md")
for name in sorted(named - scripts - error_codes):
    print(f"docs/semantics.md names {name}, and there is no such script")
sys.exit(scripts != named - error_codes)
