"""Test: the report in docs/benchmarks is made of results.json there, and that is small; what is
measured anew makes the same report as the summary that is kept of it."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
KEPT = HERE.parent / "docs" / "benchmarks"
MADE = ("results.json", "results.md")
LINES_MAX = 3500  # of all that is kept
SVG_LINES_MAX = 60


def made_of(found, folder):
    """The files of a report, by name."""
    subprocess.run([sys.executable, str(HERE / "report.py"), str(found), str(folder)], check=True,
                   stdout=subprocess.DEVNULL)
    return files(folder)


def files(folder):
    paths = [Path(folder, name) for name in MADE] + sorted(Path(folder).glob("*.svg"))
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def page_of(found, folder):
    subprocess.run([sys.executable, str(HERE / "turns_report.py"), str(found), str(folder)],
                   check=True, stdout=subprocess.DEVNULL)
    return {name: Path(folder, name).read_text(encoding="utf-8")
            for name in (found.name, Path(found.name).with_suffix(".md").name)}


def found():
    """As muster_bench writes it: three rounds of waiters, of two servers, and of storms."""
    def row(question, parameters, subject, *rounds):
        return {"question": question, "parameters": parameters, "subject": subject,
                "rounds": list(rounds)}

    rows = []
    for waiters in (1, 64):
        for subject, factor in (("echo", 1), ("muster", 1.23456789)):
            rows.append(row("wake_ups", {"waiters": waiters, "cores": "2cpu"}, subject,
                            *({"last_us": factor * waiters * at, "p50_us": 2000.4 * at,
                               "server_us": at}
                              for at in (3, 1, 2))))
    for resent in (0, 7):
        rows.append(row("connect_storm", {"connections": 256 + resent, "cores": "2cpu"}, "muster",
                        {"wall_ms": 2.0, "server_us": 9, "syns_sent_again": 0, "operations": 3},
                        {"wall_ms": 2.0, "server_us": 8, "syns_sent_again": resent,
                         "operations": 4}))
    return {"machine": {"date": "today", "load_at_start": "0.1"}, "programs": {"muster": "0.1"},
            "extent": "quick", "seconds": {"wake_ups": 1.25}, "rows": rows,
            "not_measured": [{"question": "memory", "why": "not asked"}]}


class Report(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def made_of_found(self):
        path = self.folder / "found.json"
        path.write_text(json.dumps(found()), encoding="utf-8")
        return made_of(path, self.folder / "report")

    def test_what_is_kept_is_made_of_results_json(self):
        made, kept = made_of(KEPT / "results.json", self.folder), files(KEPT)
        self.assertEqual(list(made), list(kept))
        for name, text in kept.items():
            self.assertTrue(made[name] == text, f"{name}: run `tools/dev bench --report`")

    def test_the_other_pages_are_made_of_their_json(self):
        for page in ("runtime", "musterrun"):
            for name, text in page_of(KEPT / f"{page}.json", self.folder).items():
                self.assertTrue(text == Path(KEPT, name).read_text(encoding="utf-8"),
                                f"{name}: run `tools/dev bench --report`")

    def test_the_page_of_the_runtime_compares_medians_with_the_faster_gloo(self):
        def row(subject, *rounds_us):
            return {"question": "all_reduce", "parameters": {"ranks": 2, "bytes": 1 << 20},
                    "subject": subject,
                    "rounds": [{"round_us": us, "cpu_us": 1} for us in rounds_us]}

        raw = {**found(), "page": "runtime", "not_measured": [],
               "rows": [row("shared_memory", 9, 10, 30), row("gloo", 15, 1, 18),
                        row("torch_gloo", 99, 98, 97)]}
        path = self.folder / "runtime.json"
        path.write_text(json.dumps(raw), encoding="utf-8")
        page = page_of(path, self.folder)["runtime.md"]
        self.assertIn("against the faster Gloo | ≥ 2 × | 1.50 × | **no** |", page)
        self.assertIn("| 2 | 1 MiB | 10 | 15 | 98 | 1.50 | 9.80 | 1 | 1 | 1 |", page)

    def test_what_is_kept_is_small(self):
        counts = {path.name: path.read_text(encoding="utf-8").count("\n")
                  for path in KEPT.iterdir()}
        self.assertLess(sum(counts.values()), LINES_MAX)
        for name, count in counts.items():
            if name.endswith(".svg"):
                self.assertLess(count, SVG_LINES_MAX, name)

    def test_each_plot_of_the_report_is_a_picture_that_is_there(self):
        kept = files(KEPT)
        plots = {name for name in kept if name.endswith(".svg")}
        self.assertEqual({name for name in plots if f"({name})" in kept["results.md"]}, plots)
        for name in plots:
            self.assertTrue(ElementTree.fromstring(kept[name]).tag.endswith("svg"), name)

    def test_the_summary_makes_the_same_report_as_what_was_measured(self):
        first = self.made_of_found()
        again = made_of(self.folder / "report" / "results.json", self.folder / "again")
        self.assertEqual(first, again)

    def test_a_cell_has_minimum_and_median(self):
        self.assertIn("| 64 | 2cpu | muster | 79 / 158 | 4,001 | 1 / 2 |",
                      self.made_of_found()["results.md"])

    def test_a_target_is_judged_by_all_rounds(self):
        text = self.made_of_found()["results.md"]
        self.assertIn("| SYNs that had to be sent again in all storms | ≤ 0 | 7 | **no** |", text)

    def test_a_value_that_some_rows_lack_is_left_out_there(self):
        raw = found()
        for one in raw["rows"][1]["rounds"]:
            del one["p50_us"]
        path = self.folder / "found.json"
        path.write_text(json.dumps(raw), encoding="utf-8")
        self.assertIn("| 1 | 2cpu | muster | 1.23 / 2.47 | – | 1 / 2 |",
                      made_of(path, self.folder / "report")["results.md"])

    def test_plots_of_another_run_go(self):
        report = self.folder / "report"
        report.mkdir()
        (report / "memory.svg").write_text("old", encoding="utf-8")
        self.assertEqual(set(self.made_of_found()) - set(MADE),
                         {"wake_ups.svg", "connect_storm.svg"})


if __name__ == "__main__":
    unittest.main()
