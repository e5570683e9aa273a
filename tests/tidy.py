"""Test: the sources keep to the house rules that a program can check.

tidy.py [ROOT]   prints `file:line: rule: what to do` for each finding, and exits 1 if there is one;
                 if there is none, prints the largest folders of src/ with their number of files
"""

import functools
import os
import re
import sys
from collections import Counter
from pathlib import Path

import tidy_objects
import tidy_text

LINE_COLUMNS_MAX = 100
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
DATA_MEMBERS_MAX = 20  # of a class, without those of its bases
LARGEST_FOLDERS_COUNT = 5  # that are reported

SKIPPED_FOLDER = re.compile(r"\.(?!ci$|github$).*|build.*|subprojects|__pycache__")
CODE_SUFFIXES = {".h", ".cpp", ".c", ".rs", ".py", ".sh", ".build", ".map", ".cmake"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".md", ".txt", ".yml"}
SCRIPTS = {"tools/dev", ".ci/run"}

# Room, a folder of src/ -> those whose headers it may include, beside its own. A folder in a folder
# that is not named here belongs to the room around it.
LAYERS = {
    "base": set(),
    "wire": {"base"},
    "auth": {"base", "wire"},
    "core/memory": {"base", "wire"},
    "core/session": {"base", "wire", "auth", "core/memory"},
    "core/keys": {"base", "wire", "core/memory", "core/session"},
    "core/groups": {"base", "wire", "auth", "core/memory", "core/session"},
    "core": {"base", "wire", "auth", "core/memory", "core/session", "core/keys",
             "core/groups"},
    "net": {"base", "wire"},
    "tls": {"base", "net"},  # a library of its own, which knows the headers of net/tls alone
    "client/protocol": {"base", "wire"},
    "client": {"base", "wire", "auth", "net", "client/protocol"},
    "server": {"base", "wire", "auth", "net", "core", "core/memory", "core/session"},
    "server/http": {"base"},  # what programs have of it; its own library, too
    "embed": {"base", "wire", "auth", "net", "client", "server"},
    "launch": {"base", "wire"},
    "json": {"base", "client"},  # of these the public headers alone
    "hosts": {"base", "net", "client", "communicator"},  # headers alone, for hosts' event loops
    # Libraries of their own: of the other folders of src/ they see what is inline.
    "communicator": {"base", "client"},
    "nccl": {"base", "client", "communicator"},
    "gloo": {"base", "client", "communicator"},
    "runtime": {"base", "wire", "client", "communicator"},
    "runtime_makers": {"base", "client", "communicator", "runtime", "nccl", "gloo"},  # headers
}
PURE_LAYERS = {"wire", "auth", "core", "core/memory", "core/session", "core/keys", "core/groups",
               "client/protocol", "launch"}
# Folder above the libraries -> what it may include of src/, beside the public headers.
TOOL_LAYERS = {
    "tools/musterrun/": {"launch", "base", "auth", "net"},
    "tools/musterctl/": {"auth", "base", "json", "net", "server/http"},
    "tools/musterd/": {"base", "json", "server/http"},
    "tools/support/": {"base"},
    "bindings/": {"json"},
    "src/json/": {"json"},
}

# Public header -> the layer that implements it; one that is not listed belongs to the client.
PUBLIC_LAYERS = {
    "asio.h": "hosts",
    "codec.h": "base",
    "communicator.h": "communicator",
    "config.h": "base",
    "environment.h": "runtime",
    "detail/secret_text.h": "base",
    "error.h": "base",
    "group_event.h": "base",
    "interruptible.h": "base",
    "inspected.h": "base",
    "log.h": "base",
    "result.h": "base",
    "metrics.h": "server",
    "setting.h": "base",
    "span.h": "base",
    "types.h": "base",
    "file_lock.h": "runtime",
    "gloo.h": "gloo",
    "io_thread.h": "net",
    "nccl.h": "nccl",
    "nccl_functions.h": "nccl",
    "nccl_id.h": "nccl",
    "mesh.h": "runtime",
    "nccl_linked.h": "nccl",
    "runtime.h": "runtime",
    "runtime_gloo.h": "runtime_makers",
    "runtime_nccl.h": "runtime_makers",
    "sampler.h": "runtime",
    "server.h": "server",
    "shared.h": "runtime",
    "signal_file.h": "runtime",
    "tensor.h": "runtime",
    "tensor_dlpack.h": "runtime",
    "turns.h": "runtime",
    "values.h": "runtime",
    "watch.h": "server",
}

# A file may include a third party's headers only where the path begins with one of these.
THIRD_PARTIES = {
    "boost": ("src/server/http/front/", "tests/fuzz/"),
    "asio": ("include/muster/asio.h", "include/muster/detail/asio_", "tools/musterrun/", "tests/",
             "examples/", "bench/"),
    "cereal": ("include/muster/codec_cereal.h", "include/muster/detail/cereal_", "tests/",
               "examples/", "bench/"),
    "nlohmann": ("include/muster/codec_json.h", "include/muster/detail/json_", "src/json/",
                 "tools/", "tests/", "examples/", "bench/"),
    "CLI": ("tools/", "bench/"),
    "doctest": ("tests/",),
    "pybind11": ("bindings/python/core/",),
    "gloo": ("src/gloo/", "tests/gloo/"),
    "dlpack": ("tests/runtime/",),
    "benchmark": ("bench/",),
}

THIRD_PARTY = re.compile(r"(\w+)(/|\.hpp)")

IMPURE_HEADER = re.compile(
    r"thread|mutex|shared_mutex|atomic|condition_variable|future|semaphore|latch|barrier"
    r"|stop_token|fstream|iostream|filesystem|ctime|time\.h|unistd\.h|poll\.h|fcntl\.h"
    r"|signal\.h|csignal|(sys|netinet|arpa|net)/.*|netdb\.h|ifaddrs\.h")
IMPURE_BASE_HEADERS = {"base/forked.h", "base/futex.h", "base/monotonic_now.h", "base/random.h",
                       "base/secret/secret_file.h", "base/thread.h", "base/without_signals.h"}

# Rule -> (where the path must begin, what to look for in code without comments and strings,
# what to do).
CODE_RULES = {
    "clock": (
        ("src/wire/", "src/auth/", "src/core/", "src/client/protocol/", "src/launch/"),
        re.compile(r"::now\s*\(|\b(system|steady|high_resolution)_clock\b|\bgetenv\s*\("),
        "the pure folders are given the time and their options; pass them in"),
    "total": (
        ("src/wire/", "src/auth/"),
        re.compile(r"\b(assert|abort|terminate)\s*\(|\bthrow\b"),
        "bytes from the network never throw and never assert; return an error"),
    "sleep": (
        ("tests/",),
        re.compile(r"(sleep_for|sleep_until|usleep|nanosleep|sleep(?<![\w.>].....))\s*\("),
        "wait for the event itself"),
    "bool-parameter": (
        ("include/muster/",),
        re.compile(r"[(,]\s*(?:const\s+)?bool\s*[&*]?\s+\w+\s*(?=[,)=])"),
        "give the two cases names: an enum, or an options struct"),
    "using-namespace": (
        ("include/", "src/"),
        re.compile(r"\busing\s+namespace\b(?!.*literals)"),
        "name what is used"),
    "gil": (
        ("bindings/python/",),
        re.compile(r"gil_scoped_(acquire|release)|PyGILState_(Ensure|Release)|"
                   r"PyEval_(Save|Restore|Acquire|Release)Thread|Py_BEGIN_ALLOW_THREADS"),
        "the end of the interpreter needs gil.h: WithGil, WithoutGil"),
}

# Rule -> where it does not hold: C gives results by pointers alone.
EXEMPT = {"bool-parameter": ("include/muster/c/",), "gil": ("bindings/python/core/gil.",)}

# As CODE_RULES, but with comments and strings, for every file. A pattern that begins with a letter
# is several times as fast as one that looks at what is before it first.
LINE_RULES = {
    "unfinished": (
        re.compile(r"(TO" r"DO(?<!\w....)|FIX" r"ME(?<!\w.....)|XX" r"X(?<!\w...))\b"),
        "do it, or open an issue"),
    "silenced": (
        re.compile(r"NO" r"LINT|pragma (GCC|clang) diag|clang-format" r" off|no_sani" r"tize"),
        "mend the cause"),
    "machine-path": (
        re.compile(r"/(?<![\w.~/].)(root|home|work)/\w"),
        "no paths of one machine in the project"),
    "trailing-space": (re.compile(r"[ \t]$", re.MULTILINE), "remove it"),
    "tab": (re.compile(r"\t"), "indent with spaces"),
}

# What may be silenced, by file and rule, each for a reason.
ALLOWED_LINES = {
    # A table of thirty rows is read by its columns.
    ("src/wire/operation_table.h", "silenced"): re.compile(r"^// clang-format o(ff|n)$"),
}

# Where classes are counted, and those with more data members than DATA_MEMBERS_MAX, and why.
COUNTED_PLACES = ("include/", "src/", "tools/", "bindings/")
LARGE_OBJECTS = {
    "include/muster/c/store.h:muster_store_options": "one field for each option of a store",
    "include/muster/nccl_functions.h:Functions": "one pointer for each function of NCCL",
    "include/muster/server.h:ServerOptions": "one field for each setting of a server",
}

TEST_NAME = re.compile(r'TEST_CASE(?:_FIXTURE|_TEMPLATE)?\s*\([^"]*"([^"]*)"')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
PRAGMA_ONCE = re.compile(r"^#pragma once$", re.MULTILINE)


class Tidy:
    def __init__(self, root, large_objects=LARGE_OBJECTS):
        self.root = Path(root)
        self.large_objects = large_objects
        self.objects = set()
        self.findings = []
        self.names_in_builds = set()  # what the meson.build files name, as paths from the root
        self.files = list(self.find_files())

    def find(self, path, line, rule, advice):
        self.findings.append(f"{path}:{line}: {rule}: {advice}")

    def find_files(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not SKIPPED_FOLDER.fullmatch(name))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if os.path.splitext(name)[1] in TEXT_SUFFIXES or path in SCRIPTS:
                    yield path

    def check(self):
        for path in self.files:
            text = (self.root / path).read_text(encoding="utf-8", errors="replace")
            self.check_text(path, text)
            if path.endswith("meson.build"):
                self.note_names(path, text)
            if path.endswith((".h", ".cpp", ".c")):
                self.check_cpp(path, text)
        for name in sorted(set(self.large_objects) - self.objects):
            self.find(name.split(":")[0], 1, "data-members", f"{name}: there is no such class")
        self.check_listed()
        return self.findings

    def check_text(self, path, text):
        lines = text.split("\n")
        if os.path.splitext(path)[1] in CODE_SUFFIXES or path in SCRIPTS:
            if len(lines) - 1 > FILE_LINES_MAX:
                self.find(path, FILE_LINES_MAX + 1, "file-length",
                          f"{len(lines) - 1} lines; split it, at most {FILE_LINES_MAX}")
            for number, line in enumerate(lines, 1):
                if len(line) > LINE_COLUMNS_MAX:
                    self.find(path, number, "line-length",
                              f"{len(line)} columns; at most {LINE_COLUMNS_MAX}")
        for rule, (pattern, advice) in LINE_RULES.items():
            allowed = ALLOWED_LINES.get((path, rule))
            numbers = {tidy_text.line_of(text, match.start()) for match in pattern.finditer(text)}
            for number in sorted(numbers):
                if not (allowed and allowed.search(lines[number - 1])):
                    self.find(path, number, rule, advice)

    def check_cpp(self, path, text):
        if path.endswith(".h") and not PRAGMA_ONCE.search(text):
            self.find(path, 1, "pragma-once", "begin the header with #pragma once")
        code = tidy_text.without_comments_and_strings(text)
        for rule, (places, pattern, advice) in CODE_RULES.items():
            if path.startswith(places) and not path.startswith(EXEMPT.get(rule, ())):
                for match in pattern.finditer(code):
                    self.find(path, tidy_text.line_of(code, match.start()), rule, advice)
        for first, last in tidy_text.functions(code):
            if last - first + 1 > FUNCTION_LINES_MAX:
                self.find(path, first, "function-length",
                          f"{last - first + 1} lines; at most {FUNCTION_LINES_MAX}")
        if path.startswith(COUNTED_PLACES):
            self.check_objects(path, code)
        for match in INCLUDE.finditer(text):
            number = tidy_text.line_of(text, match.start())
            self.check_include(path, number, match[1], match[2])
        if path.startswith("tests/"):
            for place in re.finditer("TEST_CASE", code):
                name = TEST_NAME.match(text, place.start())
                if name and len(name[1].split()) < 2:
                    self.find(path, tidy_text.line_of(text, place.start()), "test-name",
                              "say in a sentence what holds")

    def check_objects(self, path, code):
        for name, line, count in tidy_objects.objects(code):
            self.objects.add(f"{path}:{name}")
            is_listed = f"{path}:{name}" in self.large_objects
            if count <= DATA_MEMBERS_MAX and is_listed:
                self.find(path, line, "data-members", f"{name} has {count}: no longer an exception")
            if count > DATA_MEMBERS_MAX and not is_listed:
                self.find(path, line, "data-members",
                          f"{name} has {count}; at most {DATA_MEMBERS_MAX}: group them by meaning")

    def check_include(self, path, number, quote, name):
        party = THIRD_PARTY.match(name)
        places = THIRD_PARTIES.get(party[1]) if party else None
        if places and not path.startswith(places):
            self.find(path, number, "third-party", f"<{name}> is for {', '.join(places)} alone")
        own = layer_of(path)
        target = layer_of_include(name)
        if own in PURE_LAYERS and quote == "<" and IMPURE_HEADER.fullmatch(name):
            self.find(path, number, "purity", f"<{name}>: {own} has no threads, I/O or clock")
        if own in PURE_LAYERS - {"wire"} and name in IMPURE_BASE_HEADERS:
            self.find(path, number, "purity", f"{name}: {own} is given the time and its dice")
        if target is None:
            return
        if own is not None and target != own and target not in LAYERS[own]:
            self.find(path, number, "layers", f"{own} may not include {name} of {target}")
        if any(path.startswith(tool) and target in seen for tool, seen in TOOL_LAYERS.items()):
            return
        above = ("include/", "tools/", "examples/", "bindings/", "src/json/")
        if path.startswith(above) and not name.startswith("muster/"):
            self.find(path, number, "layers", f"{name}: only public headers, muster/*.h")

    def largest_folders(self):
        """(folder, number of files) of the largest folders of src/."""
        counts = Counter(path.rpartition("/")[0] for path in self.files
                         if path.startswith("src/"))
        return counts.most_common(LARGEST_FOLDERS_COUNT)

    def note_names(self, path, text):
        folder = os.path.dirname(path)
        for name in re.findall(r"'([^'\n]+)'", text):
            self.names_in_builds.add(os.path.normpath(os.path.join(folder, name)))

    def check_listed(self):
        """A source that no meson.build names is compiled and run by no one."""
        names = self.names_in_builds
        for path in self.files:
            if path.startswith("tests/install/"):  # built by .ci/run, against what is installed
                continue
            if path.endswith((".cpp", ".c")) and not names & {path, path.rpartition(".")[0]}:
                self.find(path, 1, "listed", "name it in a meson.build, or remove it")


def layer_of(path):
    """The layer that a file belongs to; None for those above the library."""
    if path.startswith("include/muster/"):
        return PUBLIC_LAYERS.get(path.removeprefix("include/muster/"), "client")
    return layer_of_include(path.removeprefix("src/")) if path.startswith("src/") else None


@functools.cache
def layer_of_include(name):
    if name.startswith("muster/"):
        return PUBLIC_LAYERS.get(name.removeprefix("muster/"), "client")
    rooms = (room for room in LAYERS if name.startswith(f"{room}/"))
    return max(rooms, key=len, default=None)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    tidy = Tidy(root)
    findings = tidy.check()
    for finding in findings:
        print(finding)
    for folder, count in () if findings else tidy.largest_folders():
        print(f"{folder}: {count} files")
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
