"""Test: the text of metrics is what it was, what others read, and what docs/metrics.md says.

metrics_test.py SAMPLE [--write]   SAMPLE is the program metrics_sample; --write: the text becomes
                                   the expected one, tests/metrics/expected.txt

promtool and prometheus_client judge the formats where they are there: `tools/dev setup prometheus`
brings the one, `tools/dev setup test` the other.
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "prometheus"))
import programs  # noqa: E402

EXPECTED = HERE / "expected.txt"
DOCUMENT = HERE.parent.parent / "docs" / "metrics.md"
TIMEOUT_S = 20
SAMPLES_MAX = 2000
KINDS = ("prometheus", "openmetrics", "empty")

program = ""

try:
    from prometheus_client import openmetrics, parser
    import prometheus_client.openmetrics.parser
except ImportError:
    openmetrics = parser = None


def text_of(kind):
    """What the sample program prints for `kind`, one of KINDS."""
    return subprocess.run([program, kind], check=True, capture_output=True, text=True,
                          timeout=TIMEOUT_S).stdout


def lasting(text):
    """The lines that change neither when an operation is added nor with the version."""
    idle = re.compile(r'muster_operations_total\{operation="[a-z_]+",outcome="ok"\} 0\n')
    return re.sub(r'version="[^"]*"', 'version="VERSION"', idle.sub("", text))


def families_of(text):
    """Name of each metric -> its type and the names of its labels, of the older format."""
    families = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            families[name] = (kind, set())
        elif not line.startswith("#"):
            families[name][1].update(re.findall(r'([a-z]+)="', line))
    for kind, labels in families.values():
        if kind == "histogram":
            labels.discard("le")
    return families


def label_values_of(text):
    """(metric, label) -> its values, but those that are operations or outcomes of them."""
    values = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name = re.match(r"[a-z_]+", line).group()
        name = re.sub(r"_(bucket|sum|count)$", "", name)
        for label, value in re.findall(r'([a-z]+)="([^"]*)"', line):
            if label not in ("le", "operation", "outcome", "version", "protocol"):
                values.setdefault((name, label), set()).add(value)
    return values


def documented():
    """Name of each metric in the document's tables -> its type, its labels, and its whole row."""
    rows = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `muster_"):
            continue
        name, kind, labels = cells[0].strip("`"), cells[1], set(re.findall(r"`([a-z]+)`", cells[2]))
        if name in rows:
            raise AssertionError(f"{name} has two rows")
        rows[name] = (kind, labels, line)
    return rows


class Text(unittest.TestCase):
    def test_is_what_it_was(self):
        self.maxDiff = None
        self.assertEqual(lasting(text_of("prometheus")), EXPECTED.read_text(),
                         "if that is intended: metrics_test.py SAMPLE --write")

    def test_tells_each_operation_that_never_happened(self):
        text = text_of("empty")
        table = (HERE.parent.parent / "src" / "wire" / "operation_table.h").read_text()
        names = re.findall(r'Row<\w+, *\w+> *\( *\d+, *"([a-z_]+)"', table)
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertIn(f'muster_operations_total{{operation="{name}",outcome="ok"}} 0\n', text)
        self.assertEqual(text.count("muster_operations_total{"), len(names))

    def test_has_a_bound(self):
        for kind in KINDS:
            lines = [line for line in text_of(kind).splitlines() if not line.startswith("#")]
            self.assertLess(len(lines), SAMPLES_MAX)


class Document(unittest.TestCase):
    def test_has_each_metric_with_its_type_and_labels(self):
        rows = documented()
        families = families_of(text_of("prometheus"))
        self.assertEqual(set(families) - set(rows), set(), "these lack a row")
        self.assertEqual(set(rows) - set(families), set(), "there are no such metrics")
        for name, (kind, labels) in families.items():
            self.assertEqual((name, kind, labels), (name, *rows[name][:2]))

    def test_names_each_value_of_a_label(self):
        text = DOCUMENT.read_text()
        for (name, label), values in label_values_of(text_of("prometheus")).items():
            for value in values:
                self.assertIn(f"`{value}`", text, f"{name}{{{label}=...}}")


class Readers(unittest.TestCase):
    def test_promtool_finds_nothing(self):
        promtool = programs.find("promtool")
        if promtool is None:
            self.skipTest(f"there is no promtool: {programs.HOW}")
        for kind in ("prometheus", "empty"):
            done = subprocess.run([promtool, "check", "metrics"], input=text_of(kind), text=True,
                                  capture_output=True, timeout=TIMEOUT_S)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_prometheus_client_reads_the_same_in_both_formats(self):
        if parser is None:
            self.skipTest("there is no prometheus_client: package python3-prometheus-client")
        older = [sample[:3] for family in parser.text_string_to_metric_families(
            text_of("prometheus")) for sample in family.samples]
        newer_families = list(openmetrics.parser.text_string_to_metric_families(
            text_of("openmetrics")))
        newer = [sample[:3] for family in newer_families for sample in family.samples]
        self.assertGreater(len(older), 100)
        self.assertEqual(older, newer)
        units = {family.name: family.unit for family in newer_families}
        self.assertEqual(units["muster_turn_seconds"], "seconds")
        self.assertEqual(units["muster_memory_used_bytes"], "bytes")


if __name__ == "__main__":
    program = sys.argv.pop(1)
    if "--write" in sys.argv:
        EXPECTED.write_text(lasting(text_of("prometheus")))
    else:
        unittest.main(verbosity=2)
