"""The commands of docs/operations.md do something at a server with a group that hangs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import MUSTERCTL, PATIENCE, Rank, Server, until

ROOT = Path(__file__).resolve().parents[2]
RUN_BOOK = ROOT / "docs" / "operations.md"
SESSION, PROCESS = "17", "5f0c2ab1e97d4386a1b0c4d7e8f90123"  # of which the document writes


def commands() -> list[str]:
    """Those of blocks; one goes on where a line stands further to the right."""
    found: list[str] = []
    goes_on = False
    for line in RUN_BOOK.read_text().splitlines():
        if line.startswith("    musterctl "):
            found.append(line.strip())
            goes_on = True
        elif goes_on and line.startswith("      "):
            found[-1] += "\n" + line.strip()
        else:
            goes_on = False
    return found


class Story:
    """A server whose group waits for a rank, and what the document's commands name."""

    def __init__(self, started, folder: Path) -> None:
        self.started, self.folder = started, folder
        self.server, self.other = started(Server()), started(Server())
        ranks = [started(Rank(self.server.address, "tp0", rank, 3, "")) for rank in range(3)]
        assert [rank.told() for rank in ranks] == ["joined"] * 3
        for rank in ranks[:2]:
            rank.call("barrier 600")
        until(lambda: "waits for rank 2" in self.server.musterctl("why"))
        tools = folder / "bin"
        tools.mkdir()
        (tools / "musterctl").symlink_to(MUSTERCTL)
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}",
                            "MUSTER_SERVER": self.server.address,
                            "MUSTER_STORE": self.server.address}

    def prepare(self, command: str) -> str:
        """What the command names is there; the command with names as they are here."""
        for name in ("job7", "job8"):
            self.server.musterctl("--namespace", name, "set", "key", "value")
        until(self.jobs_are_left)
        keys = self.folder / "job7.jsonl"
        if not keys.exists():
            keys.write_text('{"key": "a", "value": "b"}\n')
        if " kill " in command or " report_dead " in command:
            session = self.new_session()
            command = command.replace(f" {SESSION} ", f" {session['session']} ")
            command = command.replace(PROCESS, session["process"])
        return command.replace("GROUP", "tp0").replace("other:29400", self.other.address)

    def jobs_are_left(self) -> bool:
        """On a busy machine musterctl may end before its goodbye is sent."""
        namespaces = json.loads(self.server.musterctl("--json", "namespaces"))
        jobs = [each for each in namespaces if each["namespace"] in ("job7", "job8")]
        return not any(job["sessions"] for job in jobs)

    def new_session(self) -> dict[str, str]:
        class Waiting:
            process = subprocess.Popen([MUSTERCTL, "--server", self.server.address, "wait",
                                        "never", "--timeout", "600s"], text=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        waiting = self.started(Waiting)

        def find() -> list[dict[str, str]]:
            sessions = json.loads(self.server.musterctl("--json", "sessions"))
            return [each for each in sessions if each["pid"] == waiting.process.pid]

        return until(find)[0]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.folder,
                              env=self.environment, timeout=PATIENCE, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_every_command_does_what_it_is_for(tmp_path, started):
    story = Story(started, tmp_path)
    assert len(commands()) > 40
    untried = [command for command in commands() if "jq " in command]
    if shutil.which("jq"):
        untried = []
    for command in commands():
        if command in untried:
            continue
        ready = story.prepare(command)
        if ".hangs" in ready:  # that is so after 10 s
            until(lambda: story.run(ready).returncode == 0)
            continue
        done = story.run(ready)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
    if untried:
        pytest.skip("there is no jq: " + "; ".join(untried))


def test_every_command_that_is_named_is_there():
    told = subprocess.run([MUSTERCTL, "--help"], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=PATIENCE).stdout
    there = set(re.findall(r"^  (\w+) {2,}[A-Z]", told, re.MULTILINE))
    assert {"why", "events", "drain"} <= there
    rules = ROOT / "examples" / "prometheus" / "muster.rules.yml"
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), rules]:
        for words in re.findall(r"`musterctl ([^`]+)`", path.read_text()):
            command = re.sub(r"--(?!json|help|version|watch)[\w-]+[=\s]\s*\S+", "", words)
            named = re.search(r"(?<![\w-])[a-z]\w*", command.replace("--json", ""))
            if named:
                assert named.group() in there, f"{path.name}: {words}"
