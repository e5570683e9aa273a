"""musterrun where something is not as usual: who starts it, its limits, the room for files."""

import os
import resource
import signal
import sys
import unittest

import job_case
from job_case import JobCase, PROGRAMS


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
            user = 64000 + os.getpid() % 1000
            resource.setrlimit(limit, (most, most))
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

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

    def test_a_file_that_takes_no_more_is_told_and_the_job_goes_on(self):
        limit = 1 << 16
        code, out, err = self.run_job(
            "-n", 1, "--tee", 1, "--log-dir", self.folder / "logs", "sh", "-c",
            "seq 30000", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                     (limit, limit)))
        self.assertEqual((code, len(out.splitlines())), (0, 30000), err)
        log, = self.folder.glob("logs/*/attempt_0/0/stdout.log")
        self.assertEqual(log.stat().st_size, limit)
        self.assertEqual(err.count(f"{log} takes no more"), 1, err)


if __name__ == "__main__":
    PROGRAMS["musterrun"] = sys.argv.pop(1)
    unittest.main(verbosity=2)
