"""Test of tidy.py itself: what is planted is found, what is allowed is not."""

import sys
import tempfile
import unittest
from pathlib import Path

import tidy

LONG_FUNCTION = "int f() {\n" + "  work();\n" * 69 + "}\n"
# Eighteen, between functions and types.
DATA_MEMBERS = """
  std::function<void(int a, int b)> handler_;
  void (*free_)(void* memory, int bytes) = nullptr;
  A() : handler_(nullptr), count_{1} {}
  std::map<int, std::pair<int, int>> pairs_ = {{1, {2, 3}}};
  alignas(64) std::atomic<bool> is_done_{false};
  [[no_unique_address]] Clock clock_;
  enum class Kind { one, two } kind_ = Kind::one;
  const std::function<int()> get_ = [] { return 1; };
  B& b() const { return b_; }
  B& b_;
  std::uint8_t few_ : 3;
  auto find(int a = 1, int b = 2) -> B { return {a, b}; }
  decltype(f()) result_;
  union {
    int number_;
    float figure_;
  };
  struct sockaddr_in address_;
  enum Kind other_kind_;
  int (*row_)[3];
  char name_[length_of(int)];
  int guarded_ MUSTER_GUARDED_BY(mutex_);
  struct Nested {
    int a, b, c;
  };
  Nested nested_;
"""
# Four data members, and what is none.
FEW_DATA_MEMBERS = """
  using Map = std::map<int, int>;
  friend class B;
  enum class Kind { one, two };
  struct Nested {
    int a, b, c;
  };
  static constexpr int size = 3;
  constexpr static int other_size = 4;
  struct Later;
  unsigned : 3;
  A() : a_{1}, b_(2) {}
  explicit A(int a) : a_(a) { b_ = 1; }
  A(const A&) = delete;
  bool operator==(const A&) const = default;
  template <class T>
  T get(T a, T b = {}) const& {
    return a;
  }
  std::function<void(int)> handler() const;
  void run(std::function<void(int a, int b)> f, int count = 3) noexcept { f(count, 1); }
  int a_, b_;
  std::pair<int, int> c_ = {1, 2};
  std::array<int, 3> d_{1, 2, 3};
"""
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
    "a release of the GIL": (
        "bindings/python/core/a.h", "py::gil_scoped_release released;\n", 2, "gil"),
    "a class of 21 data members": (
        "src/base/a.h", "class A {\n" + "  int a;\n" * 21 + "};\n", 2, "data-members"),
    "a class of 21 data members that is exported": (
        "include/muster/a.h", "class MUSTER_API A final : public B {\n" + "  int a;\n" * 21 +
        "};\n", 2, "data-members"),
    "a specialization of 21 data members": (
        "src/base/a.h", "template <>\nstruct A<int> {\n" + "  int a;\n" * 21 + "};\n", 3,
        "data-members"),
    "a struct without a name": (
        "src/base/a.h", "constexpr struct {\n" + "  int a;\n" * 21 + "} table[] = {};\n", 2,
        "data-members"),
    "a struct of a tool": (
        "tools/a.h", "struct A : B {\n" + "  int a, b = f(1, 2), c[3];\n" * 7 + "};\n", 2,
        "data-members"),
    "data members of every form": (
        "src/base/a.h", "class A {\n public:\n" + DATA_MEMBERS + " private:\n" + "  int a;\n" * 3 +
        "};\n", 2, "data-members"),
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
    "a class of many functions": (
        "src/base/a.h", "class A {\n" + "  void f();\n" * 60 + "  int a;\n" * 20 + "};\n"),
    "20 data members of every form": (
        "src/base/a.h", "class A {\n public:\n" + DATA_MEMBERS + "  int a, b;\n" + "};\n"),
    "what is no data member": (
        "src/base/a.h", "class A {\n public:\n" + FEW_DATA_MEMBERS * 5 + "};\n"),
    "a base's data members": (
        "src/base/a.h", "struct A : B {\n" + "  int a;\n" * 20 + "};\nstruct C : A {\n" +
        "  int a;\n" * 20 + "};\n"),
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
        self.assertTrue(found[0].startswith("src/base/a.h:1: data-members: "), found)

    def test_an_exception_that_is_none_is_found(self):
        found = self.findings("src/base/a.h", "class A {\n  int a;\n};\n", ["src/base/a.h:A"])
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("src/base/a.h:2: data-members: "), found)

    def test_the_largest_folders_are_reported(self):
        with tempfile.TemporaryDirectory() as root:
            for folder, count in (("src/a", 1), ("src/a/b", 3), ("tests", 9)):
                Path(root, folder).mkdir(parents=True, exist_ok=True)
                for number in range(count):
                    Path(root, folder, f"{number}.h").write_text("", encoding="utf-8")
            self.assertEqual(tidy.Tidy(root).largest_folders(), [("src/a/b", 3), ("src/a", 1)])

    def test_every_rule_is_planted(self):
        planted = {rule for _, _, _, rule in PLANTED.values()}
        self.assertLessEqual(set(tidy.CODE_RULES) | set(tidy.LINE_RULES), planted)


if __name__ == "__main__":
    sys.exit(unittest.main())
