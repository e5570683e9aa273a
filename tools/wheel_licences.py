"""Puts the licences of others into a repaired wheel: of the libraries that auditwheel has added,
and of the headers that are compiled in.

wheel_licences.py WHEEL   changes the file. The texts are those of Debian's packages; which packages
                          the libraries are of, auditwheel has written into the wheel.
"""

import base64
import csv
import hashlib
import io
import json
import re
import sys
import zipfile
from pathlib import Path

DOCUMENTATION = Path("/usr/share/doc")
COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])")
# Compiled into the programs and the extension: THIRD_PARTY.md.
COMPILED_IN = ["libasio-dev", "libboost-dev", "libcli11-dev", "libxxhash-dev",
               "nlohmann-json3-dev", "pybind11-dev"]


def packages_of(wheel):
    """Of the libraries that auditwheel has added."""
    names = set()
    for name in wheel.namelist():
        if "/sboms/auditwheel" in name:
            components = json.loads(wheel.read(name)).get("components", [])
            names.update(match[1] for component in components
                         if (match := re.match(r"pkg:deb/debian/([^@?]+)",
                                               component.get("purl", ""))))
    return sorted(names)


def texts_of(package):
    """By their names; with those licences that the package's text only refers to."""
    path = DOCUMENTATION / package / "copyright"
    if not path.is_file():
        sys.exit(f"wheel_licences.py: there is no {path}")
    text = path.read_bytes()
    texts = {f"{package}.txt": text}
    for name in sorted(set(COMMON.findall(text.decode(errors="replace")))):
        texts[f"{name}.txt"] = Path("/usr/share/common-licenses", name).read_bytes()
    return texts


def record_row(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return [name, f"sha256={digest.decode()}", len(content)]


def main(arguments):
    if len(arguments) != 1:
        print(__doc__)
        return 2
    path = Path(arguments[0])
    with zipfile.ZipFile(path) as wheel:
        entries = [(info, wheel.read(info)) for info in wheel.infolist()]
        added = packages_of(wheel)
    if not added:
        sys.exit("wheel_licences.py: auditwheel has not written which packages it has taken from")
    names = [info.filename for info, _ in entries]
    (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
    folder = record.removesuffix("RECORD") + "licenses/"
    texts = {}
    for package in [*added, *COMPILED_IN]:
        texts |= {folder + name: text for name, text in texts_of(package).items()}
    rows = [record_row(name, text) for name, text in texts.items()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for info, content in entries:
            if info.filename == record:
                lines = io.StringIO()
                csv.writer(lines, lineterminator="\n").writerows(rows)
                content = content.rstrip(b"\n") + b"\n" + lines.getvalue().encode()
                for name, text in texts.items():
                    wheel.writestr(name, text)
            wheel.writestr(info, content)
    print(f"with the licences of {', '.join([*added, *COMPILED_IN])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
