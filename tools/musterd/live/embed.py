"""Puts the page and the description of the interface into a source file of musterd.

embed.py PAGE OPENAPI OUTPUT
"""

import base64
import hashlib
import json
import re
import sys
from pathlib import Path

PAGE_BYTES_MAX = 150 * 1024


def hashes(kind: str, page: str) -> str:
    """The digests of what stands in all elements of that kind, as a policy names them."""
    found = re.findall(rf"<{kind}(?:\s[^>]*)?>(.*?)</{kind}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def policy_of(page: str) -> str:
    return (f"default-src 'none'; script-src {hashes('script', page)}; "
            f"style-src {hashes('style', page)}; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'")


def array(name: str, content: bytes) -> str:
    lines = [", ".join(str(byte) for byte in content[first:first + 24])
             for first in range(0, len(content), 24)]
    return (f"const unsigned char {name}_bytes[] = {{\n" + ",\n".join(lines) + "};\n"
            f"std::string_view {name}() {{\n"
            f"  return {{reinterpret_cast<const char*>({name}_bytes), sizeof {name}_bytes}};\n}}\n")


def main() -> None:
    page_file, openapi_file, output = (Path(name) for name in sys.argv[1:])
    page = page_file.read_bytes()
    if len(page) > PAGE_BYTES_MAX:
        sys.exit(f"{page_file} has {len(page)} bytes, more than {PAGE_BYTES_MAX}")
    openapi = json.dumps(json.loads(openapi_file.read_text(encoding="utf-8"))) + "\n"
    parts = [array("page", page), array("page_policy", policy_of(page.decode()).encode()),
             array("openapi", openapi.encode())]
    output.write_text("#include <string_view>\n\n#include \"embedded.h\"\n\nnamespace musterd {\n"
                      + "\n".join(parts) + "}  // namespace musterd\n", encoding="utf-8")


if __name__ == "__main__":
    main()
