"""musterrun where something is not as usual: who starts it, its limits, the room for files."""

import os
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


if __name__ == "__main__":
    PROGRAMS["musterrun"] = sys.argv.pop(1)
    unittest.main(verbosity=2)
