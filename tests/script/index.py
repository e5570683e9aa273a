"""Every script of the core is named in docs/semantics.md, and what is named there exists."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "docs/semantics.md").read_text()
core = {path.stem for path in (root / "tests/script/core").glob("*.txt")}
client = {f"client/{path.stem}" for path in (root / "tests/script/client").glob("*.txt")}
error_header = (root / "include/muster/error.h").read_text()
error_codes = set(re.findall(r"^  (\w+) = \d+,", error_header, re.MULTILINE))

beginnings = "|".join(sorted({name.split("_")[0] for name in core}))
named = set(re.findall(rf"`((?:{beginnings})_[a-z_]+|client/[a-z_]+)`", text))
unknown = named - core - client - error_codes
for name in sorted(core - named):
    print(f"tests/script/core/{name}.txt is not named in docs/semantics.md")
for name in sorted(unknown):
    print(f"docs/semantics.md names {name}, and there is no such script")
sys.exit(bool(core - named or unknown))
