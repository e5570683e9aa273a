"""musterrun where something is not as usual: who starts it, its limits, the room for files."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

import job_case
from job_case import JobCase, PROGRAMS


def become(user, group=None):
    os.setgroups([])
    os.setgid(group or user)
    os.setuid(user)


class Surroundings(JobCase):
    def test_closed_standard_streams_become_no_other_files(self):
        told = self.folder / "told"
        script = (f"test $RANK = 0 && {{ readlink /proc/self/fd/0 > {told}.new; "
                  f"mv {told}.new {told}; exit; }}; "
                  f"while ! test -e {told}; do sleep 0.02; done; exit 3")
        for closed in ([0], [1], [0, 1, 2]):
            told.unlink(missing_ok=True)
            launcher = self.start("sh", "-c", script, stdin=None, preexec_fn=lambda closed=closed: [
                os.close(number) for number in closed])
            launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
            self.assertEqual(launcher.returncode, 3, closed)
            if 0 in closed:
                self.assertEqual(told.read_text(), "/dev/null\n")

    def test_a_signal_that_is_ignored_where_it_starts_stays_so_unless_it_is_asked_for(self):
        # As nohup does with SIGHUP, and a script's "&" with SIGINT and SIGQUIT.
        def ignore():
            for number in (signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)

        at, go = self.folder / "at", self.folder / "go"
        script = f"touch {at}; while ! test -e {go}; do sleep 0.02; done"
        for options, code in ([], 0), (["--signals-to-handle", "SIGTERM,SIGHUP"], 129):
            for path in (at, go):
                path.unlink(missing_ok=True)
            launcher = self.start("-n", 1, *options, "sh", "-c", script, preexec_fn=ignore)
            self.await_file("at")
            for number in (signal.SIGHUP, signal.SIGINT):
                launcher.send_signal(number)
            if code == 0:
                go.touch()
            launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
            self.assertEqual(launcher.returncode, code)

    def test_more_ranks_start_than_orders_fit_between_musterrun_and_its_guardian(self):
        code, out, err = self.run_job("-n", 500, "--stdout", self.folder / "all", "echo", "$RANK")
        self.assertEqual((code, out), (0, "0\n"), err)
        told = (self.folder / "all").read_text().split()
        self.assertEqual(sorted(map(int, told)), list(range(1, 500)))

    def test_the_python_of_its_virtual_environment_runs_scripts(self):
        programs = self.folder / "venv" / "bin"
        programs.mkdir(parents=True)
        shutil.copy(PROGRAMS["musterrun"], programs / "musterrun")
        python = programs / "python3"
        python.write_text("#!/bin/sh\necho of the environment $3\n")
        python.chmod(0o755)

        def out_of(**env):
            return subprocess.run(
                [programs / "musterrun", "-n", "1", "train.py", "x"], text=True, check=False,
                env=self.environment(**env), capture_output=True,
                timeout=job_case.KILL_TIMEOUT_S).stdout

        self.assertNotIn("of the environment", out_of())
        (self.folder / "venv" / "pyvenv.cfg").touch()
        self.assertEqual(out_of(), "of the environment x\n")
        self.assertEqual(out_of(PYTHON_EXEC="echo"), "-u train.py x\n")

    def test_what_is_not_there_is_named(self):
        script = self.folder / "script"
        script.write_text("#!/nonexistent/interpreter\n")
        script.chmod(0o755)
        for arguments, environment, facts in (
                (["x.py"], {"PYTHON_EXEC": "/nonexistent/python"}, ["/nonexistent/python"]),
                (["-m", "x"], {"PYTHON_EXEC": "/nonexistent/python"}, ["/nonexistent/python"]),
                ([script], {}, [str(script), "first line"])):
            code, _, err = self.run_job("-n", 1, *arguments, env=environment)
            self.assertEqual(code, 127)
            for fact in facts:
                self.assertIn(fact, err)

    def test_a_file_that_cannot_be_written_is_named(self):
        for option, file in (("--stdout", self.folder), ("--stderr", "/proc/nothing/x")):
            code, _, err = self.run_job("-n", 2, option, file, "true")
            self.assertEqual(code, 1)
            self.assertIn(f"{file}: ", err)

    def test_too_few_descriptors_are_told_as_such(self):
        code, _, err = self.run_job("-n", 60, "true", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (64, 64)))
        self.assertEqual(code, 1)
        self.assertIn("ulimit -n", err)

    def run_limited(self, limit, most, *arguments):
        """As a user without rights, and without other processes whose resources would count."""
        def become_nobody():
            resource.setrlimit(limit, (most, most))
            become(64000 + os.getpid() % 1000)

        self.folder.chmod(0o755)
        self.own.chmod(0o777)
        return self.run_job(*arguments, preexec_fn=become_nobody)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_too_few_processes_are_told_as_such(self):
        code, _, err = self.run_limited(resource.RLIMIT_NPROC, 10, "-n", 20, "sleep", 60)
        self.assertEqual(code, 1, err)
        self.assertIn("ulimit -u", err)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_ranks_start_whose_descriptors_may_not_all_be_on_the_way_at_once(self):
        self.assertEqual(self.run_limited(resource.RLIMIT_NOFILE, 560, "-n", 250, "true"),
                         (0, "", ""))

    def test_a_place_for_temporary_files_may_be_relative_and_need_not_exist(self):
        script = "test -d $(dirname $(dirname $TORCHELASTIC_ERROR_FILE)) && cd / && " \
                 "echo $TORCHELASTIC_ERROR_FILE"
        _, out, err = self.sh(script, "-n", 1, cwd=self.folder, env={"TMPDIR": "tmp"})
        self.assertEqual(Path(out).parts[:len(self.own.parts)], self.own.parts, err)
        file = self.folder / "file"
        file.touch()
        for place in (file, self.folder / "nothing"):
            code, _, err = self.run_job("-n", 1, "true", env={"TMPDIR": str(place)})
            self.assertEqual(code, 0, err)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_a_place_where_no_temporary_file_can_be_made_is_named(self):
        self.folder.chmod(0o755)
        self.own.chmod(0o555)
        code, _, err = self.run_job("-n", 1, "true", preexec_fn=lambda: become(64001))
        self.assertEqual(code, 1)
        self.assertIn(str(self.own), err)

    def full(self, script, *options, **streams):
        """A rank's script where a stream of musterrun's takes nothing."""
        with open("/dev/full", "wb") as full:
            launcher = self.start("-n", 1, *options, *script,
                                  **{name: full for name in streams})
            out, err = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        return launcher.returncode, out, err

    def test_output_that_cannot_be_written_is_told_and_no_success(self):
        code, _, err = self.full(["echo", "result"], stdout=True)
        self.assertEqual(code, 1, err)
        for fact in ("standard output", "No space left"):
            self.assertEqual(err.count(fact), 1, err)
        code, out, _ = self.full(["sh", "-c", "echo result; echo why >&2"], stderr=True)
        self.assertEqual((code, out), (1, "result\n"))
        self.assertEqual(self.full(["true"], stdout=True)[0], 0)
        code, _, err = self.full(["sh", "-c", "echo result; exit 7"], stdout=True)
        self.assertEqual(code, 7, err)
        self.assertIn("No space left", err)

    def unread(self, *arguments):
        """A musterrun whose standard output is a pipe that nobody reads."""
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as output:
            launcher = self.start(*arguments, stdout=output)
            _, err = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        return launcher.returncode, err

    def test_output_that_nobody_reads_is_told_and_no_success(self):
        for arguments in (("-n", 1, "echo", "result"), ("--help",), ("--version",),
                          ("--dry-run", "true")):
            code, err = self.unread(*arguments)
            self.assertEqual(code, 1, (arguments, err))
            self.assertIn("Broken pipe", err)

    def test_output_to_a_closed_standard_output_is_told_and_no_success(self):
        for arguments in (("-n", 1, "echo", "result"), ("--help",), ("--version",),
                          ("--dry-run", "true")):
            code, _, err = self.run_job(*arguments, preexec_fn=lambda: os.close(1))
            self.assertEqual(code, 1, (arguments, err))
            self.assertIn("Bad file descriptor", err)
        code, _, err = self.run_job("-n", 1, "true", preexec_fn=lambda: os.close(1))
        self.assertEqual((code, err), (0, ""))

    def test_a_text_of_its_own_that_cannot_be_written_is_told(self):
        for option in ("--help", "--version", "--dry-run"):
            code, _, err = self.full(["true"], option, stdout=True)
            self.assertEqual(code, 1, option)
            self.assertIn("musterrun: cannot write to the standard output: No space left", err)

    def test_a_file_that_takes_no_more_is_told_and_the_job_goes_on(self):
        limit = 1 << 16
        code, out, err = self.run_job(
            "-n", 1, "--tee", 1, "--log-dir", self.folder / "logs", "sh", "-c",
            "seq 30000", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                     (limit, limit)))
        self.assertEqual((code, len(out.splitlines())), (1, 30000), err)
        log, = self.folder.glob("logs/*/attempt_0/0/stdout.log")
        self.assertEqual(log.stat().st_size, limit)
        self.assertEqual(err.count(f"{log} takes no more"), 1, err)


@unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
class TwoUsers(JobCase):
    """In a folder that two users share, which is not sticky: each may rename what is there, and the
    kernel follows the links of both."""

    user, other, group = 64001, 64002, 64003

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        os.chown(self.own, 0, self.group)
        self.own.chmod(0o2775)

    def by(self, user, action):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                become(user, self.group)
                action()
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def precious(self, name, mode, is_linked=False):
        """A folder of the user's with files that are called as musterrun calls its lock."""
        folder = self.folder / name
        folder.mkdir()
        for each in ("lock", "musterrun.lock", "data"):
            (folder / each).write_text(each)
            os.chown(folder / each, self.user, self.group)
        if is_linked:
            os.link(folder / "musterrun.lock", self.folder / f"linked-{name}")
        os.chown(folder, self.user, self.group)
        folder.chmod(mode)
        return folder

    def start_as_user(self, *arguments):
        return self.start(*arguments, preexec_fn=lambda: become(self.user, self.group))

    def run_as_user(self, *arguments):
        launcher = self.start_as_user(*arguments)
        _, err = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(launcher.returncode, 0, err)

    def assert_kept(self, folder):
        self.assertEqual(sorted(each.name for each in folder.iterdir()),
                         ["data", "lock", "musterrun.lock"])

    def test_a_folder_that_another_user_gives_the_name_of_a_leftover_is_kept(self):
        for mode in (0o700, 0o755, 0o775):
            for name in ("musterrun-x", "musterrun-abcdef"):
                folder = self.precious(f"precious-{mode:o}-{name}", mode)
                link = self.own / name
                self.by(self.other, lambda: link.symlink_to(folder))
                self.run_as_user("-n", 1, "true")
                self.assert_kept(folder)
                link.unlink()
            moved = self.own / "musterrun-ghijkl"
            folder = self.precious(f"moved-{mode:o}", mode, is_linked=mode == 0o700)
            shutil.move(folder, self.own / "of-the-user")
            self.by(self.other, lambda: (self.own / "of-the-user").rename(moved))
            self.run_as_user("-n", 1, "true")
            self.assert_kept(moved)
            shutil.rmtree(moved)

    def test_an_own_folder_that_another_user_replaces_is_removed_and_the_other_one_kept(self):
        folder = self.precious("precious", 0o700)
        at = self.own / "at"
        launcher = self.start_as_user("-n", 1, "sh", "-c",
                                      f"touch {at}; while test -e {at}; do sleep 0.02; done")
        self.await_file("tmp/at")
        name, = self.own.glob("musterrun-*")
        away = self.own / "away"

        def replace():
            name.rename(away)
            name.symlink_to(folder)

        self.by(self.other, replace)
        at.unlink()
        launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assert_kept(folder)
        self.assertEqual(list(away.iterdir()), [])
        away.rmdir()
        name.unlink()

    def test_what_a_killed_musterrun_has_left_is_removed(self):
        at = self.own / "at"
        launcher = self.start_as_user("-n", 1, "sh", "-c", f"touch {at}; sleep 60")
        self.await_file("tmp/at")
        # All at once: whichever lives longer would remove it.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid, _ in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        launcher.wait()
        self.await_nothing_left(10)
        at.unlink()
        left, = self.own.iterdir()
        self.by(self.user, lambda: (left / "deep/er").mkdir(parents=True))
        self.by(self.user, lambda: (left / "deep/link").symlink_to(self.folder))
        self.run_as_user("-n", 1, "true")
        self.assertEqual(list(self.own.iterdir()), [])
        self.assertTrue(self.folder.exists())


if __name__ == "__main__":
    PROGRAMS["musterrun"] = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
