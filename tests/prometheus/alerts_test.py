"""Test: the alerts of examples/prometheus fire when they are to, and are documented.

The stories are the files *.yml here, for `promtool test rules`: what Prometheus has seen, and which
alerts fire then. A story says by its name which alerts it is about, such as "MusterDown: nobody
answers", and "not MusterDown: ..." that it is similar to one, and the alert does not fire. What is
expected is told of all alerts, so each story also shows what else does not fire.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import programs

try:
    import yaml
except ImportError:
    yaml = None

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples" / "prometheus"
RULES = EXAMPLES / "muster.rules.yml"
RUN_BOOK = ROOT / "docs" / "operations.md"
CHAPTER = "## When an alert fires\n"
SEVERITIES = {"critical", "warning", "info"}
TIMEOUT_S = 120

promtool = programs.find("promtool")


def alerts():
    """Name of each alert -> its rule."""
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"]
             for rule in group["rules"]]
    return {rule["alert"]: rule for rule in rules}


def stories():
    """(file, story, whether the alerts fire, their names)."""
    for path in sorted(HERE.glob("*.yml")):
        for story in yaml.safe_load(path.read_text())["tests"]:
            about = story["name"].split(": ")[0]
            fires = not about.startswith("not ")
            yield path, story, fires, about.removeprefix("not ").split(", ")


def chapter():
    """The chapter of the run book that is about alerts."""
    text = RUN_BOOK.read_text()
    begin = text.index(CHAPTER) + len(CHAPTER)
    return text[begin:text.index("\n## ", begin)]


def run(*arguments, folder=EXAMPLES):
    return subprocess.run([promtool, *arguments], cwd=folder, capture_output=True, text=True,
                          timeout=TIMEOUT_S)


@unittest.skipIf(yaml is None, "there is no yaml: Debian's package python3-yaml")
class Rules(unittest.TestCase):
    def test_say_all_that_an_operator_needs(self):
        self.assertGreater(len(alerts()), 20)
        for name, rule in alerts().items():
            with self.subTest(name):
                self.assertIn(rule["labels"]["severity"], SEVERITIES)
                told = rule["annotations"]
                self.assertEqual(set(told), {"summary", "description", "runbook"})
                self.assertEqual(told["runbook"], f"docs/operations.md#{name.lower()}")

    def test_are_the_headings_of_the_run_book(self):
        self.assertEqual(re.findall(r"^### (.*)$", chapter(), re.MULTILINE), list(alerts()))

    def test_have_a_story_in_which_they_fire_and_one_in_which_they_do_not(self):
        told = {(name, fires) for _, _, fires, names in stories() for name in names}
        self.assertEqual(told, {(name, fires) for name in alerts() for fires in (False, True)})

    def test_stories_are_about_what_they_say(self):
        for _, story, fires, names in stories():
            expected = "".join(sample["labels"] for test in story["promql_expr_test"]
                               for sample in test["exp_samples"])
            for name in names:
                self.assertEqual(f'alertname="{name}"' in expected, fires, story["name"])


class Metrics(unittest.TestCase):
    def test_are_those_of_the_document(self):
        document = (ROOT / "docs" / "metrics.md").read_text()
        documented = set(re.findall(r"^\| `(muster_\w+)`", document, re.MULTILINE))
        for path in [RULES, EXAMPLES / "muster.json", *HERE.glob("*.yml")]:
            named = {re.sub(r"_(bucket|sum|count)$", "", name)
                     for name in re.findall(r"\bmuster_\w+", path.read_text())}
            self.assertEqual(named - documented, set(), path.name)


@unittest.skipIf(promtool is None, f"there is no promtool: {programs.HOW}")
class Promtool(unittest.TestCase):
    def test_finds_nothing_in_the_rules(self):
        done = run("check", "rules", RULES.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_finds_nothing_in_the_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in EXAMPLES.glob("*.yml"):
                Path(folder, path.name).write_text(path.read_text())
            Path(folder, "muster.token").write_text("muster-http-1\n")
            done = run("check", "config", "prometheus.yml", folder=folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_tells_the_stories(self):
        for path in HERE.glob("*.yml"):
            done = run("test", "rules", path.name, folder=HERE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipIf(yaml is None, "there is no yaml: Debian's package python3-yaml")
    def test_writes_what_is_told_of_each_alert_without_a_gap(self):
        tests = []
        for _, story, fires, names in stories():
            moments = [(name, test["eval_time"]) for name in names if fires
                       for test in story["promql_expr_test"]
                       if any(f'"{name}"' in sample["labels"] for sample in test["exp_samples"])]
            # Nothing is expected, so that all there is is printed.
            nothing = [{"alertname": name, "eval_time": moment, "exp_alerts": []}
                       for name, moment in moments]
            tests.append({"name": story["name"], "interval": story["interval"],
                          "input_series": story["input_series"], "alert_rule_test": nothing})
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "15s",
                            "tests": tests}, file)
            file.flush()
            done = run("test", "rules", file.name)
        told = done.stdout + done.stderr
        self.assertEqual(set(re.findall(r'alertname="(\w+)"', told)), set(alerts()))
        for gap in ("<no value>", "<error", "NaN", "%!"):
            self.assertNotIn(gap, told)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
