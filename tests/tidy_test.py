"""Test of tidy.py itself: what is planted is found, what is allowed is not."""

import sys
import tempfile
import unittest
from pathlib import Path

import tidy

LONG_FUNCTION = "int f() {\n" + "  work();\n" * 69 + "}\n"
MESON = "files(\n'a.cpp',\n)\n"

# What is wrong -> the file it is planted in, its text, the finding's line and rule.
PLANTED = {
    "core includes net": ("src/core/a.h", '#include "net/loop.h"\n', 2, "layers"),
    "base includes wire": ("src/base/a.h", '#include "wire/frame.h"\n', 2, "layers"),
    "auth includes core": ("src/auth/a.h", '#include "core/engine.h"\n', 2, "layers"),
    "client includes server": ("src/client/a.h", '#include "server/service.h"\n', 2, "layers"),
    "server includes client": ("src/server/a.h", '#include "client/link/link.h"\n', 2, "layers"),
    "server includes Store": ("src/server/a.h", '#include "muster/store.h"\n', 2, "layers"),
    "protocol includes its client": (
        "src/client/protocol/a.h", '#include "client/link/link.h"\n', 2, "layers"),
    "public headers point up": (
        "include/muster/types.h", '#include "muster/store.h"\n', 2, "layers"),
    "a public header shows the inside": (
        "include/muster/store.h", '#include "client/link/link.h"\n', 2, "layers"),
    "a binding looks inside": (
        "bindings/python/core/a.h", '#include "client/failure.h"\n', 2, "layers"),
    "an example looks inside": ("examples/a.h", '#include "base/random.h"\n', 2, "layers"),
    "Asio in the library": ("src/net/a.h", "#include <asio/post.hpp>\n", 2, "third-party"),
    "Gloo outside of its folder": (
        "tests/nccl/a.h", "#include <gloo/context.h>\n", 2, "third-party"),
    "JSON in a public header": (
        "include/muster/types.h", "#include <nlohmann/json.hpp>\n", 2, "third-party"),
    "threads in core": ("src/core/a.h", "#include <mutex>\n", 2, "purity"),
    "sockets in the protocol": (
        "src/client/protocol/a.h", "#include <sys/socket.h>\n", 2, "purity"),
    "dice in core": ("src/core/a.h", '#include "base/random.h"\n', 2, "purity"),
    "a clock in core": ("src/core/a.h", "auto t = Clock::now();\n", 2, "clock"),
    "a clock in auth": ("src/auth/a.h", "auto t = Clock::now();\n", 2, "clock"),
    "files in auth": ("src/auth/a.h", "#include <fstream>\n", 2, "purity"),
    "a throw in auth": ("src/auth/a.h", "void f() { throw 1; }\n", 2, "total"),
    "an assertion in wire": ("src/wire/a.h", "void f() { assert(ok); }\n", 2, "total"),
    "a throw in wire": ("src/wire/a.h", "void f() { throw 1; }\n", 2, "total"),
    "a bool parameter": (
        "include/muster/a.h", "void f(int a,\n       bool fast = true);\n", 2, "bool-parameter"),
    "a sleep in a test": (
        "tests/unit/a.h", "std::this_thread::sleep_for(1s);\n", 2, "sleep"),
    "a test without a sentence": ("tests/unit/a.h", 'TEST_CASE("get") {}\n', 2, "test-name"),
    "a long line": ("src/base/a.h", "// " + "x" * 98 + "\n", 2, "line-length"),
    "a long file": ("src/base/a.h", "int a;\n" * 500, 501, "file-length"),
    "a long function": ("src/base/a.h", LONG_FUNCTION, 2, "function-length"),
    "a long method": (
        "src/base/a.h", "class A {\n" + LONG_FUNCTION + "};\n", 3, "function-length"),
    "a long constructor": (
        "src/base/a.h", "A::A() : a_{1}, b_{2} {\n" + "  work();\n" * 69 + "}\n", 2,
        "function-length"),
    "no pragma once": ("src/base/b.h", "int a;\n", 1, "pragma-once"),
    "unfinished work": ("src/base/a.h", "// TO" "DO: later\n", 2, "unfinished"),
    "a silenced check": ("src/base/a.h", "int a;  // NO" "LINT\n", 2, "silenced"),
    "a machine's path": ("docs/a.md", "see /ro" "ot/x\n", 1, "machine-path"),
    "trailing space": ("docs/a.md", "word \n", 1, "trailing-space"),
    "a tab": ("src/base/a.h", "\tint a;\n", 2, "tab"),
    "a namespace for all": ("src/base/a.h", "using namespace std;\n", 2, "using-namespace"),
    "a class of 41 members": (
        "src/base/a.h", "class A {\n" + "  void f();\n" * 20 + "  int a;\n" * 21 + "};\n", 2,
        "object-members"),
    "a source that no one compiles": ("src/base/b.cpp", "int a;\n", 1, "listed"),
}

ALLOWED = {
    "layers that point down": (
        "src/server/a.h", '#include "core/engine.h"\n#include "net/loop.h"\n'),
    "embed holds both": (
        "src/embed/a.h", '#include "client/link/link.h"\n#include "server/service.h"\n'),
    "words in comments and strings": (
        "src/core/a.h", '// Clock::now() is not for us.\nauto a = "steady_clock";\n'),
    "a listed source": ("src/base/a.cpp", "int a;\n"),
    "long namespaces and classes": (
        "src/base/a.h",
        "namespace a {\nclass B {\n" + "  void f() {\n    g();\n  }\n" * 40 +
        "};\n}  // namespace a\n"),
    "a long table": (
        "src/base/a.h", "constexpr A table[] = {\n" + "    {1, f(2)},\n" * 80 + "};\n"),
    "a function of 70 lines": (
        "src/base/a.h", "int f() {\n" + "  work();\n" * 68 + "}\n"),
    "bool as a result": ("include/muster/a.h", "Result<bool> f(Span<const bool> a);\n"),
    "digits apart and letters": ("src/base/a.h", "int a = 1'000'000; char b = '{';\n"),
}


class TidyTest(unittest.TestCase):
    def findings(self, path, text, large_objects=()):
        with tempfile.TemporaryDirectory() as root:
            file = Path(root, path)
            file.parent.mkdir(parents=True)
            if path.endswith("/a.h") or path.startswith("include/"):
                text = "#pragma once\n" + text
            file.write_text(text, encoding="utf-8")
            Path(root, "src").mkdir(exist_ok=True)
            (file.parent / "meson.build").write_text(MESON, encoding="utf-8")
            return tidy.Tidy(root, large_objects).check()

    def test_what_is_planted_is_found(self):
        for what, (path, text, line, rule) in PLANTED.items():
            with self.subTest(what):
                found = self.findings(path, text)
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(f"{path}:{line}: {rule}: "), found)

    def test_what_is_allowed_is_not_found(self):
        for what, (path, text) in ALLOWED.items():
            with self.subTest(what):
                self.assertEqual(self.findings(path, text), [])

    def test_an_exception_without_its_class_is_found(self):
        found = self.findings("src/base/a.h", "class A {\n  int a;\n};\n", ["src/base/a.h:B"])
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("src/base/a.h:1: object-members: "), found)

    def test_every_rule_is_planted(self):
        planted = {rule for _, _, _, rule in PLANTED.values()}
        self.assertLessEqual(set(tidy.CODE_RULES) | set(tidy.LINE_RULES), planted)


if __name__ == "__main__":
    sys.exit(unittest.main())
