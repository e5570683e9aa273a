"""musterrun on one host: its exit codes, errors, signals and files. The numbers are those of
README.md."""

import os
import signal
import subprocess
import sys
import time
import unittest

import job_case
from job_case import JobCase


class ExitCodes(JobCase):
    def test_l01_all_ranks_end_well(self):
        self.assertEqual(self.sh("exit 0"), (0, "", ""))

    def test_l02_the_exit_code_of_the_rank_that_failed(self):
        code, _, err = self.sh("test $RANK = 0 || exit 3; sleep 60")
        self.assertEqual(code, 3)
        self.assertIn("rank 1 ", err)
        self.assertIn("exited with 3", err)

    def test_l03_also_of_rank_0(self):
        self.assertEqual(self.sh("test $RANK = 1 || exit 3; sleep 60")[0], 3)

    def test_l04_a_signal_has_its_name(self):
        code, _, err = self.sh("test $RANK = 0 || kill -SEGV $$; sleep 60")
        self.assertEqual(code, 139)
        self.assertIn("SIGSEGV", err)

    def test_l05_a_sigkill_says_that_memory_may_have_been_short(self):
        code, _, err = self.sh("test $RANK = 0 || kill -KILL $$; sleep 60")
        self.assertEqual(code, 137)
        self.assertIn("SIGKILL", err)
        self.assertIn("memory", err)

    def test_l06_a_program_that_is_not_there(self):
        code, _, err = self.run_job("/nonexistent/program")
        self.assertEqual(code, 127)
        self.assertIn("/nonexistent/program", err)

    def test_a_program_that_cannot_be_executed(self):
        (self.folder / "data").write_text("nothing")
        self.assertEqual(self.run_job(self.folder / "data")[0], 126)

    def test_the_first_failure_by_time_is_shown(self):
        code, _, err = self.sh("test $RANK = 0 && { sleep 0.1; exit 7; }; sleep 0.4; exit 5")
        self.assertEqual(code, 7)
        self.assertNotIn("exited with 5", err)

    def test_the_last_output_of_the_rank_that_failed_is_shown_also_of_rank_0(self):
        for rank in (0, 1):
            script = f"test $RANK = {rank} || sleep 60; echo before >&2; echo the cause >&2; exit 1"
            err = self.sh(script)[2]
            self.assertIn("its last output:\nbefore\nthe cause\n", err)

    def test_torchruns_exit_code_is_1_for_any_failure(self):
        for program in (["sh", "-c", "exit 3"], ["/nonexistent/program"]):
            code, _, _ = self.run_job("--compat", "torchrun", "--nproc-per-node", 2, "--no-python",
                                      *program)
            self.assertEqual(code, 1)

    def test_the_message_of_torchs_error_file_is_shown(self):
        message = '{"message": {"message": "RuntimeError: it broke"}}'
        err = self.sh(f"test $RANK = 0 && sleep 60; echo '{message}' > $TORCHELASTIC_ERROR_FILE; "
                      "exit 1")[2]
        self.assertIn("RuntimeError: it broke", err)


class Placement(JobCase):
    """Nodes that are numbered by hand: composer's checks, each with its facts."""

    ELSEWHERE = ("--master_addr", "127.0.0.1", "--master_port", "29500")

    def refused(self, *options, env=None):
        code, out, err = self.run_job(*options, "true", env=env)
        self.assertEqual((code, out), (2, ""), err)
        return err

    def test_l07_module_and_command_contradict_each_other(self):
        err = self.refused("-m", "-c")
        self.assertIn("-m", err)
        self.assertIn("-c", err)

    def test_l08_a_format_with_a_wrong_key_is_refused_before_anything_starts(self):
        code, _, err = self.run_job("--stdout", "{rnk}.txt", "touch", self.folder / "ran")
        self.assertEqual(code, 2)
        self.assertIn("{rnk}", err)
        self.assertFalse((self.folder / "ran").exists())

    def test_a_short_option_may_have_an_equals_sign(self):
        for words in (("-n=2",), ("-n2",), ("-n", 2)):
            code, out, err = self.run_job(*words, "--dry-run", "true")
            self.assertEqual(code, 0, err)
            self.assertIn("LOCAL_WORLD_SIZE=2", out)
        self.assertIn('"="', self.refused("-n=="))

    def test_nproc_is_1_or_greater(self):
        self.assertIn("nproc must be 1 or greater", self.refused("-n", 0))
        for count in (2**22 + 1, 2**31 - 1, 2**31, 2**64):
            self.assertIn("nproc must be 1 to", self.refused("-n", count))
            self.assertIn("LOCAL_WORLD_SIZE", self.refused(env={"LOCAL_WORLD_SIZE": str(count)}))

    def test_l09_a_world_is_no_smaller_than_a_node(self):
        err = self.refused("-n", 2, "--world_size", 1)
        self.assertIn("world_size(1) cannot be less than nproc(2)", err)

    def test_l10_of_several_nodes_each_needs_its_number(self):
        err = self.refused("-n", 2, "--world_size", 4, *self.ELSEWHERE)
        self.assertIn("node_rank or base_rank is required", err)

    def test_l11_a_base_rank_that_does_not_follow(self):
        err = self.refused("-n", 3, "--world_size", 5, "--node_rank", 1, *self.ELSEWHERE)
        self.assertIn("different amounts of processes", err)
        self.assertIn("give --base_rank", err)

    def test_l12_a_node_rank_that_does_not_follow(self):
        err = self.refused("-n", 3, "--world_size", 5, "--base_rank", 2, *self.ELSEWHERE)
        self.assertIn("different amounts of processes", err)
        self.assertIn("give --node_rank", err)

    def test_l13_a_rank_beyond_the_world(self):
        err = self.refused("-n", 2, "--world_size", 5, "--base_rank", 4, "--node_rank", 2,
                           *self.ELSEWHERE)
        for fact in ("base_rank(4)", "nproc(2)", "rank(5)", "world_size(5)"):
            self.assertIn(fact, err)

    def test_l14_several_nodes_need_a_master_address(self):
        err = self.refused("-n", 2, "--world_size", 4, "--node_rank", 0, "--master_port", 29500)
        self.assertIn("master_addr is required", err)

    def test_l15_several_nodes_need_a_master_port(self):
        err = self.refused("-n", 2, "--world_size", 4, "--node_rank", 0, "--master_addr", "a")
        self.assertIn("master_port is required", err)

    def test_l16_a_single_node_begins_with_rank_0(self):
        self.assertIn("base_rank(2)", self.refused("-n", 2, "--base_rank", 2))

    def test_l17_a_single_node_has_no_other_number_than_0(self):
        self.assertIn("node_rank(1)", self.refused("-n", 2, "--node_rank", 1))
        self.assertIn("node_rank(1)", self.refused("-n", 2, env={"NODE_RANK": "1"}))

    def test_l26_no_process_in_the_environment_is_one(self):
        code, out, _ = self.sh("echo $WORLD_SIZE", env={"LOCAL_WORLD_SIZE": "0"})
        self.assertEqual((code, out), (0, "1\n"))

    def test_l27_a_node_of_another_size(self):
        code, out, err = self.run_job(
            "-n", 3, "--world_size", 5, "--base_rank", 2, "--node_rank", 1, *self.ELSEWHERE,
            "--tee", 1, "sh", "-c", "echo $RANK $LOCAL_WORLD_SIZE $NODE_RANK $MASTER_PORT")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(line.split(": ")[1] for line in out.splitlines()),
                         [f"{rank} 3 1 29500" for rank in (2, 3, 4)])

    def test_l29_arguments_of_the_program_are_its_own(self):
        code, out, _ = self.run_job("-n", 1, "echo", "--nproc", "7", "--version", "-m")
        self.assertEqual((code, out), (0, "--nproc 7 --version -m\n"))

    def test_an_unknown_option_is_no_program(self):
        err = self.refused("--nprocs", 2)
        self.assertIn('"--nprocs"', err)
        self.assertIn("did you mean", err)


class Signals(JobCase):
    SLEEPS = ('trap "exit 0" TERM HUP QUIT INT; touch {folder}/at-$RANK; '
              "while :; do sleep 0.05; done")

    def signalled(self, number, script=SLEEPS, *options):
        launcher = self.start(*options, "sh", "-c", script.format(folder=self.folder))
        self.await_files("at-0", "at-1")
        launcher.send_signal(number)
        launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        return launcher.returncode

    def test_l18_signals_are_forwarded_and_no_rank_survives(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            for rank in (0, 1):
                (self.folder / f"at-{rank}").unlink(missing_ok=True)
            self.assertEqual(self.signalled(number), 128 + number)
            self.assertEqual(self.await_nothing_left(5), [])

    def test_l19_no_rank_survives_that_musterrun_is_killed(self):
        self.assertEqual(self.signalled(signal.SIGKILL), -signal.SIGKILL)
        self.assertEqual(self.await_nothing_left(10), [])

    def test_l20_an_interrupt_ends_all(self):
        self.assertEqual(self.signalled(signal.SIGINT), 130)

    def test_which_signal_it_was_is_told_once(self):
        for script in ("exit 0", "sleep 0.3; exit 0"):
            for rank in (0, 1):
                (self.folder / f"at-{rank}").unlink(missing_ok=True)
            launcher = self.start("sh", "-c", f'trap "{script}" QUIT; '
                                  f"touch {self.folder}/at-$RANK; while :; do sleep 0.05; done")
            self.await_files("at-0", "at-1")
            launcher.send_signal(signal.SIGQUIT)
            _, err = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
            self.assertEqual((launcher.returncode, err.count("told to end by SIGQUIT")), (131, 1))

    STUBBORN = 'trap "" TERM; touch {folder}/at-$RANK; while :; do sleep 0.05; done'

    def test_l21_a_rank_that_ignores_the_signal_is_killed_in_time(self):
        begin = time.monotonic()
        code = self.signalled(signal.SIGTERM, self.STUBBORN, "--shutdown-timeout", "300ms")
        self.assertEqual(code, 143)
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)

    def test_a_second_signal_kills_at_once(self):
        launcher = self.start("sh", "-c", self.STUBBORN.format(folder=self.folder))
        self.await_files("at-0", "at-1")
        launcher.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        launcher.send_signal(signal.SIGTERM)
        launcher.communicate(timeout=10)
        self.assertEqual(launcher.returncode, 143)

    def test_usr1_is_forwarded_only_when_it_is_asked_for(self):
        script = ('trap "echo heard $RANK > {folder}/heard-$RANK; exit 0" USR1; '
                  "touch {folder}/at-$RANK; while :; do sleep 0.05; done")
        launcher = self.start("--signals-to-handle", "SIGTERM,SIGUSR1", "sh", "-c",
                              script.format(folder=self.folder))
        self.await_files("at-0", "at-1")
        launcher.send_signal(signal.SIGUSR1)
        launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(launcher.returncode, 0)
        self.await_files("heard-0", "heard-1")


class NothingIsLeft(JobCase):
    """What ranks leave behind: children in sessions of their own, that ignore signals."""

    LEAVES = ('(setsid sh -c \'trap "" TERM HUP INT; touch {folder}/stray-\'$RANK\'; '
              'while :; do sleep 1; done\' &) ; '
              "while ! test -e {folder}/stray-$RANK; do sleep 0.02; done; ")

    def leaving(self, then, *options):
        script = self.LEAVES.format(folder=self.folder) + then
        code, _, _ = self.sh(script, "--shutdown-timeout", "300ms", *options)
        self.assertEqual(self.await_nothing_left(5), [])
        return code

    def test_l22_the_grandchild_of_a_rank_that_ignores_the_signal(self):
        self.assertEqual(self.leaving('trap "" TERM; test $RANK = 0 && exit 4; sleep 60'), 4)

    def test_l23_the_grandchild_of_a_rank_that_obeys(self):
        self.assertEqual(self.leaving("test $RANK = 0 && exit 4; sleep 60"), 4)

    def test_the_grandchildren_of_ranks_that_end_well(self):
        self.assertEqual(self.leaving("exit 0"), 0)

    def test_they_have_their_time_to_end_well(self):
        script = ("(setsid sh -c 'trap \"echo done > {0}/done; exit 0\" TERM; touch {0}/there; "
                  "while :; do sleep 0.05; done' &) ; "
                  "while ! test -e {0}/there; do sleep 0.02; done").format(self.folder)
        self.assertEqual(self.sh(script, "-n", 1)[0], 0)
        self.await_file("done", 1)

    def test_t11_when_the_guardian_is_killed(self):
        script = self.LEAVES.format(folder=self.folder) + "touch {0}/at-$RANK; sleep 60".format(
            self.folder)
        launcher = self.start("sh", "-c", script)
        self.await_files("at-0", "at-1")
        guardian, = job_case.children_of(launcher.pid)
        os.kill(guardian, signal.SIGKILL)
        _, err = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(launcher.returncode, 1)
        self.assertIn("guardian", err)

    def test_when_musterrun_is_killed(self):
        script = self.LEAVES.format(folder=self.folder) + "touch {0}/at-$RANK; sleep 60".format(
            self.folder)
        launcher = self.start("--shutdown-timeout", "300ms", "sh", "-c", script)
        self.await_files("at-0", "at-1")
        launcher.kill()
        launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(self.await_nothing_left(10), [])


class Files(JobCase):
    def test_l24_arguments_are_expanded_for_each_rank(self):
        code, out, _ = self.run_job("-n", 2, "--tee", 1, "echo", "x$RANK", "${LOCAL_RANK}y", "~",
                                    "$NOPE", "a~", "$", env={"HOME": "/h/me"})
        self.assertEqual(code, 0)
        self.assertEqual(sorted(line.split(": ")[1] for line in out.splitlines()),
                         [f"x{rank} {rank}y /h/me $NOPE a~ $" for rank in (0, 1)])

    def test_l25_files_are_named_by_formats_and_appended(self):
        name = self.folder / "logs" / "{rank}-{world_size}.txt"
        for _ in range(2):
            self.assertEqual(self.sh("echo $RANK; echo e$RANK >&2", "--stdout", name, "--stderr",
                                     self.folder / "err{local_rank}")[:2], (0, "0\n"))
        self.assertEqual((self.folder / "logs" / "1-2.txt").read_text(), "1\n1\n")
        self.assertEqual((self.folder / "err1").read_text(), "e1\ne1\n")
        self.assertFalse((self.folder / "logs" / "0-2.txt").exists())

    def test_a_failure_shows_nothing_of_an_earlier_run(self):
        name = self.folder / "{rank}.txt"
        self.sh("echo earlier >&2", "--stderr", name)
        err = self.sh("test $RANK = 0 && sleep 60; echo now >&2; exit 1", "--stderr", name)[2]
        self.assertIn("now", err)
        self.assertNotIn("earlier", err)

    def test_l28_two_launches_at_once_do_not_collide(self):
        script = "echo $MASTER_PORT $MUSTER_STORE; sleep 0.3"
        launchers = [self.start("sh", "-c", script) for _ in range(4)]
        told = [launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)[0].split()
                for launcher in launchers]
        self.assertEqual([launcher.returncode for launcher in launchers], [0] * 4)
        self.assertEqual(len({port for port, _ in told}), 4)
        self.assertEqual(len({store for _, store in told}), 4)

    def test_the_port_of_the_master_is_held_and_can_be_listened_on(self):
        program = ("import os, socket\n"
                   "port = int(os.environ['MASTER_PORT'])\n"
                   "strange = socket.socket()\n"
                   "try:\n    strange.bind(('127.0.0.1', port))\n    print('free')\n"
                   "except OSError:\n    print('held')\n"
                   "own = socket.socket()\n"
                   "own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                   "own.bind(('', port))\nown.listen()\nprint('listens')\n")
        (self.folder / "port.py").write_text(program)
        code, out, err = self.run_job("-n", 1, "--tcpstore", "off", self.folder / "port.py",
                                      env={"PYTHON_EXEC": sys.executable})
        self.assertEqual((code, out), (0, "held\nlistens\n"), err)

    def test_the_logs_of_a_folder_are_kept_by_attempt_and_rank(self):
        logs = self.folder / "logs"
        script = ("echo out $RANK; touch {0}/$TORCHELASTIC_RESTART_COUNT-$RANK; "
                  "while ! test -e {0}/$TORCHELASTIC_RESTART_COUNT-0; do sleep 0.02; done; "
                  "exit $RANK").format(self.folder)
        code, out, _ = self.sh(script, "--log-dir", logs, "--job-id", "j",
                               "--max-restarts", 1, "--redirects", 3)
        self.assertEqual((code, out), (1, ""))
        folder, = logs.glob("j_*")
        for attempt in (0, 1):
            for rank in (0, 1):
                text = (folder / f"attempt_{attempt}" / str(rank) / "stdout.log").read_text()
                self.assertEqual(text, f"out {rank}\n")

    def test_lines_are_shown_whole_with_the_rank(self):
        out = self.sh("printf 'a\\nb'", "--tee", 1, "--role", "trainer")[1]
        self.assertEqual(sorted(out.splitlines()),
                         [f"[trainer{rank}]: {line}" for rank in (0, 1) for line in "ab"])

    def test_nothing_is_lost_of_a_rank_that_ends_while_its_reader_is_slow(self):
        # As much as musterrun and a pipe hold at least: the end is in the pipe when the rank ends,
        # or has been read just before. So there are several.
        launchers = [self.start("-n", 1, "sh", "-c",
                                f"head -c 1088k /dev/zero; touch {self.folder}/written-{number}")
                     for number in range(4)]
        end = time.monotonic() + job_case.KILL_TIMEOUT_S
        for number, launcher in enumerate(launchers):
            self.await_file(f"written-{number}")
            while job_case.children_of(launcher.pid):  # then it waits for its reader alone
                self.assertLess(time.monotonic(), end, "the job does not end")
                time.sleep(0.01)
            out, _ = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
            self.assertEqual(len(out), 1088 << 10)

    def test_standard_input_is_for_rank_0_alone(self):
        launcher = self.start("--tee", 1, "sh", "-c", 'read x; echo "got <$x>"',
                              stdin=subprocess.PIPE)
        out, _ = launcher.communicate("hello\n", timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(sorted(out.splitlines()),
                         ["[default0]: got <hello>", "[default1]: got <>"])

    def test_who_reads_late_gets_all(self):
        # More than musterrun keeps, so that the last of it is in the pipe of a rank that has ended.
        launcher = self.start("-n", 1, "sh", "-c", "head -c 1120000 /dev/zero; touch "
                              f"{self.folder}/written")
        self.await_file("written")
        time.sleep(6)  # longer than a job that a signal ends waits for its reader
        out, _ = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual((launcher.returncode, len(out)), (0, 1120000))

    def test_a_signal_ends_the_wait_for_who_reads_late(self):
        launcher = self.start("-n", 1, "sh", "-c", "head -c 200000 /dev/zero; "
                              f"touch {self.folder}/written")
        self.await_file("written")
        while job_case.children_of(launcher.pid):
            time.sleep(0.02)
        launcher.send_signal(signal.SIGTERM)
        launcher.wait(10)
        self.assertIn(launcher.returncode, (-signal.SIGTERM, 128 + signal.SIGTERM))

    def test_who_stops_reading_ends_the_job(self):
        launcher = self.start("-n", 1, "yes")
        launcher.stdout.readline()
        launcher.stdout.close()
        launcher.stdout = None
        launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(launcher.returncode, 141)


class Ranks(JobCase):
    def test_the_variables_of_torchrun_and_our_own(self):
        code, out, err = self.run_job(
            "-n", 2, "--tee", 1, "--max-restarts", 3, "--job-id", "run", "--role", "r", "env",
            env={"RANK": "9", "GROUP_RANK": "7", "TORCHELASTIC_RUN_ID": "outer",
                 "SLURM_PROCID": "5",
                 "OMPI_COMM_WORLD_RANK": "4", "NCCL_ASYNC_ERROR_HANDLING": "0"})
        self.assertEqual(code, 0, err)
        ranks = ({}, {})
        for line in out.splitlines():
            prefix, _, rest = line.partition(": ")
            name, _, value = rest.partition("=")
            ranks[int(prefix[-2])][name] = value
        for rank in (0, 1):
            expected = {
                "RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "ROLE_RANK": rank,
                "ROLE_NAME": "r", "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "GROUP_WORLD_SIZE": 1,
                "ROLE_WORLD_SIZE": 2, "NODE_RANK": 0, "NUM_NODES": 1, "MASTER_ADDR": "127.0.0.1",
                "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 3,
                "TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_USE_AGENT_STORE": "True",
                "NCCL_ASYNC_ERROR_HANDLING": 0, "TORCH_NCCL_ASYNC_ERROR_HANDLING": 0,
                "OMP_NUM_THREADS": 1, "PYTHONUNBUFFERED": 1, "MUSTER_NAMESPACE": "run/0"}
            found = {name: ranks[rank].get(name) for name in expected}
            self.assertEqual(found, {name: str(value) for name, value in expected.items()})
            for name in ("MASTER_PORT", "MUSTER_STORE", "TORCHELASTIC_ERROR_FILE"):
                self.assertTrue(ranks[rank].get(name), name)
            for name in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
                self.assertNotIn(name, ranks[rank])

    def test_the_pids_of_ranks_are_told_to_who_asks_for_more(self):
        script = "host=${MUSTER_HOST_PID:-$$:$$}; echo $RANK runs as pid ${host#*:}"
        code, out, err = self.sh(script, "--tee", 1, "--verbose")
        self.assertEqual(code, 0)
        for line in out.splitlines():
            self.assertIn("musterrun: rank " + line.split(": ")[1] + "\n", err)

    def test_a_restart_starts_all_ranks_again(self):
        script = "echo $RANK in $TORCHELASTIC_RESTART_COUNT; test $TORCHELASTIC_RESTART_COUNT = 2"
        code, out, err = self.sh(script, "--tee", 1, "--max-restarts", 2)
        self.assertEqual(code, 0, err)
        self.assertIn("[default0]: 0 in 2", out)
        self.assertIn("[default1]: 1 in 2", out)
        self.assertIn("2 of 2 restarts used", err)

    def test_a_rank_that_ends_well_may_leave_the_others_behind_for_a_while(self):
        code, _, err = self.sh("test $RANK = 0 || sleep 60", "--exit-grace", "300ms")
        self.assertEqual(code, 1)
        self.assertIn("still run", err)

    def test_the_processes_are_as_many_as_gpus_are_visible(self):
        for visible, count in (("0,1,2", 3), ("0,-1,2", 1), ("", None)):
            code, out, _ = self.run_job("-n", "gpu", "sh", "-c", "echo $WORLD_SIZE",
                                        env={"CUDA_VISIBLE_DEVICES": visible})
            if count is None:
                self.assertEqual(code, 2)
            else:
                self.assertEqual((code, out), (0, f"{count}\n"))

    def test_the_processes_are_as_many_as_processors(self):
        code, out, _ = self.run_job("-n", "cpu", "sh", "-c", "echo $WORLD_SIZE")
        self.assertEqual((code, out), (0, f"{len(os.sched_getaffinity(0))}\n"))


if __name__ == "__main__":
    job_case.PROGRAMS["musterrun"] = sys.argv.pop(1)
    unittest.main(verbosity=2)
