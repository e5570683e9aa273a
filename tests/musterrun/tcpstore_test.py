"""The TCPStore that musterrun opens for torch, as seen by ranks without torch. S3 to S10 of
README.md."""

import os
import re
import socket
import subprocess
import sys
import unittest
from pathlib import Path

import job_case
from job_case import PROGRAMS
from nodes_test import NodeCase

CLIENT = Path(__file__).resolve().parent / "tcpstore_client.py"
PYTHON = {"PYTHON_EXEC": sys.executable}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class TcpStore(NodeCase):
    def job(self, *words, options=(), env=None):
        """A job of two ranks on one node, all of which are shown."""
        return self.start("-n", 2, "--tee", 1, *options, CLIENT, *words,
                          env={**PYTHON, **(env or {})})

    def both(self, *words, options=(), env=None):
        """The same on two nodes of a rank each."""
        return [self.node("-n", 1, "--node-rank", rank, "--tee", 1, *options, CLIENT, *words,
                          env={**PYTHON, **(env or {})}) for rank in (0, 1)]

    def lines_of(self, *launchers):
        """What the ranks say, if all have ended well, sorted; and what the launchers do."""
        codes, out, err = self.end_of(launchers)
        self.assertEqual(codes, [0] * len(launchers), err)
        return sorted(line.split("]: ")[1] for line in out.splitlines()), err

    def check_attempts(self, *launchers):
        """returns  the ports of both attempts"""
        lines, _ = self.lines_of(*launchers)
        found = [re.fullmatch(r"(\d) in (\d) at (\d+) by True: \[\]", line) for line in lines]
        self.assertNotIn(None, found, lines)
        self.assertEqual([(one[1], one[2]) for one in found],
                         [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")])
        ports = [{one[3] for one in found if one[2] == attempt} for attempt in "01"]
        self.assertEqual([len(each) for each in ports], [1, 1], "ranks were told different ports")
        return [each.pop() for each in ports]

    def test_s3_an_attempt_does_not_see_the_keys_of_the_one_before(self):
        self.check_attempts(self.job("attempts", options=("--max-restarts", 1)))

    def test_s4_the_store_does_not_end_with_rank_0(self):
        self.assertEqual(self.lines_of(self.job("outlived"))[0], ["False set"])

    def test_s5_two_jobs_at_once_do_not_see_the_keys_of_each_other(self):
        jobs = [self.job("beside", self.folder, *names) for names in ("ab", "ba")]
        self.assertEqual(self.lines_of(*jobs)[0], ["0 True False"] * 2 + ["1 True False"] * 2)

    def test_s6_without_a_store_nobody_is_at_the_port_and_rank_0_hosts_one(self):
        for options, env in ((("--tcpstore", "off"), {}), ((), {"MUSTERRUN_TCPSTORE": "off"}),
                             ((), {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})):
            with self.subTest(options=options, env=env):
                lines, _ = self.lines_of(self.job("told", options=options, env=env))
                self.assertEqual(lines, ["127.0.0.1 False False"] * 2)
        lines, _ = self.lines_of(self.job("told", options=("--tcpstore", "on"),
                                          env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}))
        self.assertEqual(lines, ["127.0.0.1 True True"] * 2)

    def test_s7_the_store_is_at_the_port_that_was_given_in_each_attempt(self):
        port = free_port()
        self.assertEqual(self.check_attempts(self.job("attempts", options=(
            "--max-restarts", 1, "--master-port", port))), [str(port)] * 2)

    def test_s7_a_port_that_somebody_has_ends_the_job_and_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            launcher = self.job("told", options=("--master-port", port))
            codes, _, err = self.end_of([launcher])
        self.assertEqual(codes, [1])
        self.assertIn(f"127.0.0.1:{port}", err)

    def test_s8_ranks_of_all_nodes_reach_it_and_an_attempt_has_a_fresh_one(self):
        self.check_attempts(*self.both("attempts", options=("--max-restarts", 1)))

    def test_s8_an_address_that_is_a_name_is_served_on_all_interfaces_of_the_node(self):
        name = socket.gethostname()
        lines, _ = self.lines_of(*self.both("told", "127.0.0.1", options=("--local-addr", name)))
        self.assertEqual(lines, [f"{name} True True"] * 2)

    def test_s10_nodes_that_are_numbered_by_hand_have_none_and_who_wants_one_is_told_why(self):
        by_hand = ("--nnodes", 2, "--master-addr", "127.0.0.1", "--master-port", free_port())
        ranks = [self.start("-n", 1, "--node-rank", rank, "--tee", 1, *by_hand, CLIENT, "told",
                            env=PYTHON) for rank in (0, 1)]
        self.assertEqual(self.lines_of(*ranks)[0], ["127.0.0.1 False False"] * 2)
        code, _, err = self.run_job("-n", 1, "--node-rank", 0, *by_hand, "--tcpstore", "on", "true")
        self.assertEqual(code, 2)
        self.assertIn("--tcpstore", err)
        self.assertIn("--rendezvous", err)

    def test_a_single_node_opens_it_beyond_loopback_only_when_it_is_told(self):
        beyond = ("--master-addr", "0.0.0.0")
        lines, err = self.lines_of(self.job("told", options=beyond))
        self.assertEqual(lines, ["0.0.0.0 False False"] * 2)
        self.assertEqual(err.count("there is no TCPStore for torch"), 1, err)
        for allowed in (("--tcpstore", "on"), ("--allow-unauthenticated",)):
            lines, err = self.lines_of(self.job("told", options=(*beyond, *allowed)))
            self.assertEqual((lines, err), (["0.0.0.0 True True"] * 2, ""))

    def test_pytorch_2_1_is_served_where_its_dialect_is_told(self):
        lines, _ = self.lines_of(self.job("second", options=("--tcpstore-dialect", "second")))
        self.assertEqual(lines, ["ab"] * 2)

    def test_what_is_not_served_is_told_by_musterrun(self):
        lines, err = self.lines_of(self.job("too_long"))
        self.assertEqual(lines, ["ended"] * 2)
        self.assertEqual(err.count("musterrun: TCPStore: "), 2, err)

    def test_operators_look_into_it_at_the_address_that_is_told(self):
        go = self.folder / "go"
        script = f"touch {self.folder}/$RANK; while ! test -e {go}; do sleep 0.02; done"
        launcher = self.start("-n", 2, "--verbose", "sh", "-c", script)
        self.await_files("0", "1")
        lines = []
        while not lines or "TCPStore" not in lines[-1]:
            lines.append(launcher.stderr.readline())
        port, server = re.search(r" port (\d+); musterctl --server (\S+)", lines[-1]).groups()
        connection = socket.create_connection(("127.0.0.1", int(port)))
        connection.sendall(b"\x00\xce\xf7\x85\x3c\x0d\x01\x02\x03\x04")  # a PING
        self.assertEqual(connection.recv(4), b"\x01\x02\x03\x04")
        sessions = subprocess.run(
            [PROGRAMS["musterctl"], "--server", server, "--namespace", "tcpstore", "sessions"],
            capture_output=True, text=True, check=True, timeout=job_case.KILL_TIMEOUT_S).stdout
        self.assertIn(f":{connection.getsockname()[1]}", sessions)
        connection.close()
        go.touch()
        launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(launcher.returncode, 0)


if __name__ == "__main__":
    os.environ.pop("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", None)
    for tool in ("musterrun", "musterd", "musterctl"):
        PROGRAMS[tool] = sys.argv.pop(1)
    unittest.main(verbosity=2)
