"""musterrun on several nodes that meet at a server: several launchers on one host."""

import os
import signal
import subprocess
import sys
import time
import unittest

import job_case
from job_case import JobCase, PROGRAMS


class NodeCase(JobCase):
    def setUp(self):
        super().setUp()
        self.server = subprocess.Popen([PROGRAMS["musterd"], "--listen", "127.0.0.1:0"], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.address = self.server.stdout.readline().split()[-1]
        self.addCleanup(self.end_server)

    def end_server(self):
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()

    def node(self, *arguments, job="job", nodes="2", **options):
        return self.start("--rendezvous", self.address, "--job-id", job, "--nnodes", nodes,
                          "--last-call", "1s", *arguments, start_new_session=True, **options)

    def nodes(self, count, script, *options, **more):
        """returns  the launchers, each with two ranks that run a script of the shell"""
        return [self.node(*options, "sh", "-c", script, **more) for _ in range(count)]

    def ctl(self, *words, namespace="musterrun"):
        """returns  what musterctl prints, of the keys of jobs if nothing else is named"""
        return subprocess.run([PROGRAMS["musterctl"], "--server", self.address, "--namespace",
                               namespace, *words], capture_output=True, text=True,
                              check=True).stdout

    def await_keys(self, part, count=1):
        """Until the board has so many keys with that part in their names."""
        end = time.monotonic() + job_case.KILL_TIMEOUT_S
        while self.ctl("ls").count(part) < count:
            self.assertLess(time.monotonic(), end, f"no {count} keys {part} have come")
            time.sleep(0.05)

    def end_of(self, launchers):
        """returns  exit codes, and what all wrote to standard output and standard error"""
        ends = [launcher.communicate(timeout=job_case.KILL_TIMEOUT_S) for launcher in launchers]
        return ([launcher.returncode for launcher in launchers], "".join(end[0] for end in ends),
                "".join(end[1] for end in ends))

    def kill_node(self, launcher):
        """As when its host is switched off, but for connections, which the kernel closes: all of
        its processes at once."""
        self.is_swept_later = True
        family = self.stopped_family(launcher.pid)
        # The launcher first, which would tell the others of its ranks' ends.
        for pid in sorted(family, key=lambda pid: pid != launcher.pid):
            send_signal(pid, signal.SIGKILL)

    @staticmethod
    def stopped_family(first):
        """Stops a process with all that descend from it: none of them can start another one then,
        which nobody would know of.

        returns  their pids"""
        family = {first}
        send_signal(first, signal.SIGSTOP)
        looks_without_news = 0
        # Twice: a process that ends during a look may have started one that is not in it.
        while looks_without_news < 2:
            more = {pid for pid, parent in job_case.parents().items()
                    if parent in family} - family
            for pid in more:
                send_signal(pid, signal.SIGSTOP)
            family |= more
            looks_without_news = 0 if more else looks_without_news + 1
        return family


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended


class Nodes(NodeCase):
    def test_nodes_get_ranks_where_they_meet(self):
        script = ("echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, $NODE_RANK of "
                  "$NUM_NODES, $MASTER_PORT $MUSTER_STORE")
        codes, out, err = self.end_of(self.nodes(3, script, "--tee", 1, nodes="3"))
        self.assertEqual(codes, [0, 0, 0], err)
        lines = sorted(line.split(": ")[1].split(", ") for line in out.splitlines())
        self.assertEqual([line[:3] for line in lines],
                         [[f"{rank} of 6", f"{rank % 2} of 2", f"{rank // 2} of 3"]
                          for rank in range(6)])
        self.assertEqual(len({line[3] for line in lines}), 1)
        self.assertIn(self.address, lines[0][3])

    def test_a_node_that_was_told_otherwise_than_the_first_leaves_and_the_others_go_on(self):
        first = self.node("true")
        self.await_keys("/node/")
        for options, told in (([], {"nodes": "3"}), (["--max-restarts", 1], {})):
            other = self.node(*options, "true", **told)
            _, err = other.communicate(timeout=job_case.KILL_TIMEOUT_S)
            self.assertEqual(other.returncode, 2, err)
            self.assertIn("--nnodes 2 and --max-restarts 0", err)
            self.assertIn(str(first.pid), err)
        self.assertEqual(self.end_of([first, self.node("true")])[0], [0, 0])

    def test_nodes_of_different_sizes(self):
        script = "echo $RANK of $WORLD_SIZE on $NODE_RANK"
        first = self.node("-n", 1, "--node-rank", 0, "--tee", 1, "sh", "-c", script)
        second = self.node("-n", 3, "--node-rank", 1, "--tee", 1, "sh", "-c", script)
        codes, out, err = self.end_of([second, first])
        self.assertEqual(codes, [0, 0], err)
        self.assertEqual(sorted(line.split(": ")[1] for line in out.splitlines()),
                         ["0 of 4 on 0", "1 of 4 on 1", "2 of 4 on 1", "3 of 4 on 1"])

    def test_ranks_of_each_role_are_numbered(self):
        script = "echo $ROLE_NAME $RANK: $ROLE_RANK of $ROLE_WORLD_SIZE"
        launchers = [self.node("--node-rank", node_rank, "-n", count, "--role", role, "--tee", 1,
                               "sh", "-c", script, nodes="3")
                     for node_rank, (count, role) in enumerate([(1, "a"), (2, "b"), (2, "a")])]
        codes, out, err = self.end_of(launchers)
        self.assertEqual(codes, [0, 0, 0], err)
        self.assertEqual(sorted(line.split("]: ")[1] for line in out.splitlines()),
                         ["a 0: 0 of 3", "a 3: 1 of 3", "a 4: 2 of 3", "b 1: 0 of 2",
                          "b 2: 1 of 2"])

    def test_two_jobs_at_one_server_do_not_meet(self):
        launchers = [launcher for job in "ab" for launcher in
                     self.nodes(2, "echo $TORCHELASTIC_RUN_ID $MASTER_PORT; sleep 0.2", "--tee", 1,
                                job=job)]
        codes, out, err = self.end_of(launchers)
        self.assertEqual(codes, [0] * 4, err)
        told = {line.split(": ")[1] for line in out.splitlines()}
        self.assertEqual(sorted(line.split()[0] for line in told), ["a", "b"])

    def test_t18_nothing_is_left_at_the_server(self):
        codes, _, err = self.end_of(self.nodes(2, "exit 0"))
        self.assertEqual(codes, [0, 0], err)
        self.assertEqual(self.ctl("ls"), "")

    def test_a_failure_on_one_node_ends_all_with_its_exit_code(self):
        script = "test $RANK = 2 && { echo why >&2; exit 9; }; sleep 60"
        codes, _, err = self.end_of(self.nodes(2, script))
        self.assertEqual(codes, [9, 9])
        self.assertEqual(err.count("rank 2 (local rank 0 of node 1"), 2)
        self.assertEqual(err.count("\nwhy\n"), 2)

    def test_all_ranks_of_all_nodes_restart(self):
        # Rank 3 fails when all have told: who is ended before cannot.
        script = ("echo $RANK in $TORCHELASTIC_RESTART_COUNT $MUSTER_NAMESPACE; "
                  "test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0; touch {0}/told-$RANK; "
                  "while test $(ls {0} | grep -c told) != 4; do sleep 0.02; done; "
                  "test $RANK = 3 && exit 1; sleep 60").format(self.folder)
        codes, out, err = self.end_of(self.nodes(2, script, "--tee", 1, "--max-restarts", 1))
        self.assertEqual(codes, [0, 0], err)
        told = {line.split(": ")[1] for line in out.splitlines()}
        self.assertEqual(told, {f"{rank} in {attempt} job/{attempt}"
                                for rank in range(4) for attempt in (0, 1)})

    def test_a_node_that_does_not_come_is_told(self):
        codes, _, err = self.end_of(
            [self.node("--node-rank", 0, "--join-timeout", "12s", "true")])
        self.assertEqual(codes, [1])
        self.assertIn("missing: node 1", err)
        self.assertIn("1 of 2 nodes have come within 12 s", err)

    def test_a_launcher_ends_whose_name_another_job_has_taken(self):
        launcher = self.node("--join-timeout", "20s", "true")
        self.await_keys("/node/")
        self.ctl("set", "job/run", "another")
        codes, _, err = self.end_of([launcher])
        self.assertEqual(codes, [1])
        self.assertIn("another one of its name may have begun", err)

    def test_two_nodes_of_one_rank_are_told(self):
        codes, _, err = self.end_of([self.node("--node-rank", 0, "true") for _ in range(2)])
        self.assertEqual(codes, [2, 2])
        self.assertIn("node rank 0 was given to two nodes", err)


class LostNodes(NodeCase):
    SCRIPT = ("touch {folder}/at-$TORCHELASTIC_RESTART_COUNT-$WORLD_SIZE-$RANK; "
              "while ! test -e {folder}/end; do sleep 0.05; done")

    def begin(self, *options, nodes):
        launchers = self.nodes(2, self.SCRIPT.format(folder=self.folder), *options, nodes=nodes)
        self.await_files(*(f"at-0-4-{rank}" for rank in range(4)))
        return launchers

    def test_enough_nodes_go_on_and_use_no_restart(self):
        launchers = self.begin(nodes="1:2")
        self.kill_node(launchers[0])
        self.await_files("at-1-2-0", "at-1-2-1")
        (self.folder / "end").touch()
        codes, _, err = self.end_of(launchers[1:])
        self.assertEqual(codes, [0], err)
        self.assertIn(f"pid {launchers[0].pid}", err)
        self.assertIn("0 of 0 restarts used", err)

    def test_too_few_nodes_end_the_job_and_name_the_dead_one(self):
        launchers = self.begin(nodes="2")
        begin = time.monotonic()
        self.kill_node(launchers[1])
        codes, _, err = self.end_of(launchers[:1])
        self.assertEqual(codes, [1])
        self.assertLess(time.monotonic() - begin, 30)
        self.assertIn(f"pid {launchers[1].pid}", err)
        self.assertIn("1 of at least 2 nodes are left", err)

    def test_a_new_node_takes_the_place_of_a_lost_one(self):
        launchers = self.begin("--max-restarts", 1, nodes="2")
        self.kill_node(launchers[0])
        launchers += self.nodes(1, self.SCRIPT.format(folder=self.folder), "--max-restarts", 1)
        self.await_files(*(f"at-1-4-{rank}" for rank in range(4)))
        (self.folder / "end").touch()
        codes, _, err = self.end_of(launchers[1:])
        self.assertEqual(codes, [0, 0], err)
        self.assertRegex(err, "[01] of 1 restarts used")  # 0: it came before it was waited for

    def test_a_node_that_is_told_to_end_leaves_the_others_running(self):
        launchers = self.begin(nodes="1:2")
        launchers[1].send_signal(signal.SIGTERM)
        self.await_files("at-1-2-0", "at-1-2-1")
        (self.folder / "end").touch()
        self.assertEqual(self.end_of(launchers)[0], [0, 143])

    def test_a_node_that_comes_waits_for_the_next_attempt(self):
        launchers = self.begin("--max-restarts", 1, nodes="1:3")
        launchers += self.nodes(1, self.SCRIPT.format(folder=self.folder), "--max-restarts", 1,
                                nodes="1:3")
        time.sleep(1.5)
        self.assertFalse((self.folder / "at-0-6-5").exists())
        self.kill_node(launchers[0])
        self.await_files(*(f"at-1-4-{rank}" for rank in range(4)))
        (self.folder / "end").touch()
        self.assertEqual(self.end_of(launchers[1:])[0], [0, 0])

    def test_a_node_that_comes_enlarges_the_job_when_it_may(self):
        launchers = self.begin("--scale-up", nodes="2:3")
        launchers += self.nodes(1, self.SCRIPT.format(folder=self.folder), "--scale-up",
                                nodes="2:3")
        self.await_files(*(f"at-1-6-{rank}" for rank in range(6)))
        (self.folder / "end").touch()
        codes, _, err = self.end_of(launchers)
        self.assertEqual(codes, [0, 0, 0], err)
        self.assertIn("0 of 0 restarts used", err)

    def test_ranks_whose_attempt_is_over_are_not_started_when_rank_0_tells_its_address_late(self):
        def begin(rank):
            return self.node("--node-rank", rank, "--max-restarts", 1, "sh", "-c",
                             self.SCRIPT.format(folder=self.folder), nodes="3")
        launchers = [begin(1)]
        self.await_keys("/node/")
        launchers.append(begin(0))
        self.await_keys("/node/", 2)
        launchers[1].send_signal(signal.SIGSTOP)
        launchers.append(begin(2))
        self.await_keys("/plan/0")
        launchers[2].send_signal(signal.SIGTERM)
        self.assertEqual(self.end_of(launchers[2:])[0], [143])
        launchers[1].send_signal(signal.SIGCONT)
        self.await_keys("/master/0")
        launchers[2] = begin(2)
        self.await_files(*(f"at-1-6-{rank}" for rank in range(6)))
        self.assertEqual(list(self.folder.glob("at-0-6-[2345]")), [])
        (self.folder / "end").touch()
        codes, _, err = self.end_of(launchers)
        self.assertEqual(codes, [0, 0, 0], err)

    def test_a_node_that_dies_as_the_attempt_begins_is_missed_at_once(self):
        """The group of the launchers, which tells of the dead, is not there yet; it would be waited
        for until a minute has passed."""
        def begin():
            return self.node("sh", "-c", "sleep 60", nodes="3")
        launchers = [begin()]
        self.await_keys("/node/")
        launchers.append(begin())
        self.await_keys("/node/", 2)
        launchers[1].send_signal(signal.SIGSTOP)
        launchers.append(begin())
        self.await_keys("/plan/0")
        self.kill_node(launchers[1])
        killed = time.monotonic()
        codes, _, err = self.end_of(launchers)
        self.assertLess(time.monotonic() - killed, 30)
        self.assertEqual(codes, [1, -signal.SIGKILL, 1], err)
        self.assertIn("its launcher has gone before it began the attempt", err)

    def test_a_node_says_that_it_waits_for_an_earlier_run_and_how_long(self):
        script = f"trap '' TERM; touch {self.folder}/begun; while :; do sleep 0.1; done"
        first = self.node("--shutdown-timeout", "60s", "sh", "-c", script, nodes="1")
        self.await_file("begun")
        first.send_signal(signal.SIGTERM)
        end = time.monotonic() + job_case.KILL_TIMEOUT_S
        while "/node/" in self.ctl("ls"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        second = self.node("--join-timeout", "1s", "true", nodes="1")
        codes, _, err = self.end_of([second])
        self.assertEqual(codes, [1], err)
        self.assertIn("waits until an earlier run of this job is over", err)
        self.assertIn("is not over: its launchers still end their ranks", err)
        first.send_signal(signal.SIGTERM)  # a second time: now
        self.assertEqual(self.end_of([first])[0], [143])

    def test_what_a_killed_job_has_left_is_not_read_by_the_next_one_of_its_name(self):
        launchers = self.begin(nodes="2")
        self.ctl("set", "address", "of the killed job", namespace="job/0")
        for launcher in launchers:
            self.kill_node(launcher)
        for rank in range(4):
            (self.folder / f"at-0-4-{rank}").unlink()
        time.sleep(3)  # the server's grace: until then it may come back
        self.assertNotIn("job/0", self.ctl("namespaces"))
        launchers = self.begin(nodes="2")
        (self.folder / "end").touch()
        self.assertEqual(self.end_of(launchers)[0], [0, 0])

    def test_launchers_that_start_as_all_others_were_killed_begin_a_new_run(self):
        launchers = self.begin(nodes="2")
        for launcher in launchers:
            self.kill_node(launcher)
        for rank in range(4):
            (self.folder / f"at-0-4-{rank}").unlink()
        (self.folder / "end").touch()
        # Within the server's grace: the keys of the dead launchers are still there.
        self.assertIn("/node/", self.ctl("ls"))
        launchers = self.nodes(2, self.SCRIPT.format(folder=self.folder), "--max-restarts", 1)
        self.assertEqual(self.end_of(launchers)[0], [0, 0])
        self.assertEqual(sorted(path.name for path in self.folder.glob("at-*")),
                         [f"at-0-4-{rank}" for rank in range(4)])

    def test_a_run_whose_name_is_kept_is_entered_though_no_launcher_answers(self):
        self.ctl("set", "job/run", "kept")  # by a launcher of an older version
        self.ctl("set", "job/kept/node/0000000009", "there")
        self.assertEqual(self.end_of([self.node("true", nodes="1")])[0], [0])
        self.assertEqual(self.ctl("get", "job/run"), "kept")

    def test_the_node_that_hosts_the_meeting_place_dies(self):
        self.end_server()  # its port is free now
        launchers = [self.node("--node-rank", rank, "sh", "-c",
                               self.SCRIPT.format(folder=self.folder)) for rank in (0, 1)]
        self.await_files(*(f"at-0-4-{rank}" for rank in range(4)))
        self.kill_node(launchers[0])
        codes, _, err = self.end_of(launchers[1:])
        self.assertEqual(codes, [1])
        self.assertIn("its meeting place", err)
        self.assertIn(f"pid {launchers[0].pid}", err)

    def test_the_node_that_hosts_the_meeting_place_is_told_to_end(self):
        self.end_server()  # its port is free now
        launchers = [self.node("--node-rank", rank, "sh", "-c",
                               self.SCRIPT.format(folder=self.folder)) for rank in (0, 1)]
        self.await_files(*(f"at-0-4-{rank}" for rank in range(4)))
        send_signal(launchers[0].pid, signal.SIGTERM)
        codes, _, err = self.end_of(launchers[1:])
        self.assertEqual(codes, [143])
        self.assertIn("was told to end by SIGTERM", err)
        self.assertNotIn("is gone", err)
        self.assertEqual(self.end_of(launchers[:1])[0], [143])


if __name__ == "__main__":
    for name in ("musterrun", "musterd", "musterctl"):
        PROGRAMS[name] = sys.argv.pop(1)
    unittest.main(verbosity=2)
