"""musterrun on several hosts, which are network namespaces: what only a network can show. Skips
itself where these cannot be made."""

import ctypes
import os
import select
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

import job_case
from job_case import PROGRAMS, JobCase

SKIPPED = 77
PORT = 29400
CLIENT = Path(__file__).resolve().parent / "tcpstore_client.py"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Looks:
    """Counts how often a file was read."""

    READ_TO_ITS_END = 0x10  # IN_CLOSE_NOWRITE

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.file = open(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0)
        libc.inotify_add_watch(self.file.fileno(), str(path).encode(), self.READ_TO_ITS_END)

    def await_count(self, count):
        with self.file:
            while count > 0:
                ready, _, _ = select.select([self.file], [], [], job_case.KILL_TIMEOUT_S)
                assert ready, "nobody reads it"
                count -= len(self.file.read(1 << 16)) // 16  # of an event without a name


class Hosts(JobCase):
    """Hosts behind one bridge: 10.77.0.1 has the server, 10.77.0.2 and .3 are nodes."""

    def setUp(self):
        super().setUp()
        self.prefix = f"mr{os.getpid() % 100000}"
        self.hosts = [f"{self.prefix}-{number}" for number in range(3)]
        self.switch = f"{self.prefix}-switch"
        self.addCleanup(self.remove_hosts)
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for number, host in enumerate(self.hosts):
            ip("netns", "add", host)
            ip("link", "add", "eth0", "netns", host, "type", "veth", "peer", "name",
               f"port{number}", "netns", self.switch)
            ip("-n", self.switch, "link", "set", f"port{number}", "master", "bridge", "up")
            ip("-n", host, "address", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
            ip("-n", host, "link", "set", "lo", "up")
        self.server = None

    def names_on(self, host, text):
        """What a host's processes find in /etc/hosts; returns the file."""
        folder = Path("/etc/netns", self.hosts[host])
        folder.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, folder)
        (folder / "nsswitch.conf").write_text("hosts: files\n")
        names = folder / "hosts"
        names.write_text(text)
        return names

    def remove_hosts(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()
        for name in (*self.hosts, self.switch):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def serve(self, host=0, at="10.77.0.1"):
        """A server on a host."""
        self.server = subprocess.Popen(
            ["ip", "netns", "exec", self.hosts[host], PROGRAMS["musterd"], "--listen",
             f"{at}:{PORT}", "--allow-unauthenticated", "--session-timeout=5s",
             "--heartbeat=500ms"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.server.stdout.readline()

    def node(self, host, *arguments, nodes="2", meet="10.77.0.1"):
        """A launcher on a host, which is called as its network namespace, with two ranks."""
        named = ["unshare", "--uts", "sh", "-c", f'hostname {self.hosts[host]} && exec "$@"', "sh"]
        launcher = subprocess.Popen(
            ["ip", "netns", "exec", self.hosts[host], *named, PROGRAMS["musterrun"], "--rendezvous",
             f"{meet}:{PORT}", "--job-id", "job", "--nnodes", nodes, "--last-call", "1s",
             *map(str, arguments)],
            env=self.environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.launchers.append(launcher)
        return launcher

    def end_of(self, launchers):
        ends = [launcher.communicate(timeout=job_case.KILL_TIMEOUT_S) for launcher in launchers]
        return ([launcher.returncode for launcher in launchers], "".join(end[0] for end in ends),
                "".join(end[1] for end in ends))

    def cut(self, host, state):
        ip("-n", self.switch, "link", "set", f"port{host}", state)

    WAITS = ("touch {folder}/at-$TORCHELASTIC_RESTART_COUNT-$WORLD_SIZE-$RANK; "
             "while ! test -e {folder}/end; do sleep 0.05; done")

    def begin(self, nodes):
        self.serve()
        script = self.WAITS.format(folder=self.folder)
        launchers = [self.node(host, "sh", "-c", script, nodes=nodes) for host in (1, 2)]
        self.await_files(*(f"at-0-4-{rank}" for rank in range(4)))
        return launchers

    def test_ranks_are_told_an_address_that_the_other_host_reaches(self):
        self.serve()
        script = "echo $MASTER_ADDR"
        first = self.node(1, "--node-rank", 0, "--tee", 1, "sh", "-c", script)
        second = self.node(2, "--node-rank", 1, "--tee", 1, "sh", "-c", script)
        codes, out, err = self.end_of([first, second])
        self.assertEqual(codes, [0, 0], err)
        self.assertEqual({line.split(": ")[1] for line in out.splitlines()}, {"10.77.0.2"})

    def test_a_name_that_appears_late_leads_to_an_address_that_the_other_host_reaches(self):
        self.serve()
        line = "10.77.0.1 meeting.example\n"
        names = self.names_on(1, "")
        self.names_on(2, line)
        looks = Looks(names)
        script = "echo $MASTER_ADDR"
        first = self.node(1, "--node-rank", 0, "--tee", 1, "sh", "-c", script,
                          meet="meeting.example")
        looks.await_count(8)  # more than there are before it waits
        with names.open("a") as file:
            file.write(line)
        second = self.node(2, "--node-rank", 1, "--tee", 1, "sh", "-c", script,
                           meet="meeting.example")
        codes, out, err = self.end_of([first, second])
        self.assertEqual(codes, [0, 0], err)
        self.assertEqual({line.split(": ")[1] for line in out.splitlines()}, {"10.77.0.2"})

    def test_an_address_that_the_other_host_does_not_reach_is_an_error(self):
        self.serve(host=1, at="0.0.0.0")
        self.names_on(1, "127.0.1.1 meeting.example\n")
        self.names_on(2, "10.77.0.2 meeting.example\n")

        def nodes(*arguments):
            return self.end_of([
                self.node(host, "--node-rank", host - 1, *arguments, "--tee", 1, "sh", "-c",
                          "echo $MASTER_ADDR", meet="meeting.example") for host in (1, 2)])

        codes, out, err = nodes()
        self.assertEqual((codes, out), ([1, 1], ""), err)
        for fact in ("MASTER_ADDR", "127.0.0.1", self.hosts[2], "--local-addr"):
            self.assertIn(fact, err)
        codes, out, err = nodes("--master_addr", "10.77.0.2")
        self.assertEqual(codes, [0, 0], err)
        self.assertEqual({line.split(": ")[1] for line in out.splitlines()}, {"10.77.0.2"})

    # S8
    def test_the_store_of_torch_is_at_the_node_of_rank_0_and_the_other_host_reaches_it(self):
        self.serve()
        told = ("--tee", 1, sys.executable, CLIENT, "told")
        codes, out, err = self.end_of([self.node(host, "--node-rank", host - 1, *told)
                                       for host in (1, 2)])
        self.assertEqual((codes, err), ([0, 0], ""))
        self.assertEqual({line.split(": ")[1] for line in out.splitlines()},
                         {"10.77.0.2 True True"})

    def test_the_first_node_hosts_the_meeting_place(self):
        refused = self.node(1, "--node-rank", 0, "true", meet="10.77.0.2")
        codes, _, err = self.end_of([refused])
        self.assertEqual(codes, [1])
        self.assertIn("unauthenticated", err)
        first = self.node(1, "--node-rank", 0, "--allow-unauthenticated", "--tee", 1, "sh", "-c",
                          "echo $MUSTER_STORE", meet="10.77.0.2")
        second = self.node(2, "--node-rank", 1, "--tee", 1, "sh", "-c", "echo $MUSTER_STORE",
                           meet="10.77.0.2")
        codes, out, err = self.end_of([second, first])
        self.assertEqual(codes, [0, 0], err)
        self.assertEqual({line.split(": ")[1] for line in out.splitlines()}, {f"10.77.0.2:{PORT}"})

    def test_a_name_that_becomes_one_of_this_host_is_hosted_then(self):
        names = self.names_on(1, "")
        self.names_on(2, "10.77.0.2 meeting.example\n")
        looks = Looks(names)
        launchers = [
            self.node(host, "--node-rank", host - 1, "--allow-unauthenticated", "--tee", 1, "sh",
                      "-c", "echo $MASTER_ADDR", meet="meeting.example") for host in (1, 2)]
        looks.await_count(8)
        with names.open("a") as file:
            file.write("10.77.0.2 meeting.example\n")
        codes, out, err = self.end_of(launchers)
        self.assertEqual(codes, [0, 0], err)
        self.assertEqual({line.split(": ")[1] for line in out.splitlines()}, {"10.77.0.2"})

    def test_a_meeting_place_that_no_launcher_hosts_is_named(self):
        launcher = self.node(2, "--node-rank", 1, "true", meet="10.77.0.2")
        self.assertIn(f"no launcher serves 10.77.0.2:{PORT}; the one with --node-rank 0 does",
                      launcher.stderr.readline())

    def test_a_name_whose_address_only_this_host_reaches_is_named(self):
        self.names_on(1, "127.0.1.1 meeting.example\n")
        launcher = self.node(1, "true", meet="meeting.example")
        self.assertIn("only processes of this host can reach 127.0.1.1", launcher.stderr.readline())

    def test_a_name_server_that_does_not_answer_holds_up_no_deadline(self):
        folder = self.names_on(1, "").parent
        (folder / "nsswitch.conf").write_text("hosts: files dns\n")
        (folder / "resolv.conf").write_text("nameserver 10.77.0.1\n")
        ip("netns", "exec", self.hosts[0], "ip", "link", "set", "eth0", "arp", "off")  # is silent
        launcher = self.node(1, "--join-timeout", "2s", "true", meet="meeting.example")
        codes, _, err = self.end_of([launcher])
        self.assertEqual(codes, [1])
        self.assertIn("waited for meeting.example: no name server has answered yet", err)

    def test_a_host_that_is_cut_off_is_named_and_the_others_go_on(self):
        launchers = self.begin(nodes="1:2")
        self.cut(1, "down")
        self.await_files("at-1-2-0", "at-1-2-1")
        (self.folder / "end").touch()
        codes, _, err = self.end_of(launchers[1:])
        self.assertEqual(codes, [0], err)
        self.assertIn("not heard any more", err)
        # The launcher that is cut off ends its ranks by itself.
        codes, _, err = self.end_of(launchers[:1])
        self.assertEqual(codes, [1], err)

    def test_a_short_cut_is_noticed_by_nobody(self):
        launchers = self.begin(nodes="2")
        self.cut(1, "down")
        time.sleep(1.5)
        self.cut(1, "up")
        time.sleep(1)
        (self.folder / "end").touch()
        codes, _, err = self.end_of(launchers)
        self.assertEqual((codes, err), ([0, 0], ""))


def why_not():
    """Why no namespaces can be made; empty: they can."""
    try:
        made = subprocess.run(["ip", "netns", "add", f"mr{os.getpid()}-try"], capture_output=True,
                              text=True, check=False)
        subprocess.run(["ip", "netns", "delete", f"mr{os.getpid()}-try"], capture_output=True,
                       check=False)
        return made.stderr.strip()
    except FileNotFoundError:
        return "there is no program ip"


if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: no network namespaces: {reason}")
        sys.exit(SKIPPED)
    for name in ("musterrun", "musterd", "musterctl"):
        PROGRAMS[name] = sys.argv.pop(1)
    unittest.main(verbosity=2)
