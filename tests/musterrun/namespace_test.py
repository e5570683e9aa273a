"""The PID namespace of a node's ranks: nothing is left of them, and people are told the host's
pids."""

import os
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

import job_case
from job_case import JobCase

NOBODY = 65534
HAS_A_CHILD = ('(setsid sh -c \'trap "" TERM HUP INT; touch {folder}/stray-\'$RANK\'; '
               'while :; do sleep 0.1; done\' &) ; '
               "while ! test -e {folder}/stray-$RANK; do sleep 0.02; done; "
               "touch {folder}/at-$RANK; sleep 60")


AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]


def is_allowed(*command):
    return subprocess.run([*command, "--pid", "--fork", "--mount-proc", "true"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


MAY_MAKE_ONE = is_allowed("unshare")
MAY_BE_ADMINISTRATOR = os.geteuid() == 0 and is_allowed(*AS_NOBODY, "unshare", "--user")


class Namespace(JobCase):
    @unittest.skipUnless(MAY_MAKE_ONE, "this process may not make a PID namespace")
    def test_musterrun_and_its_guardian_are_killed_at_once(self):
        self.is_swept_later = True  # temporary files
        launcher = self.start("sh", "-c", HAS_A_CHILD.format(folder=self.folder))
        self.await_files("at-0", "at-1")
        guardian, = job_case.children_of(launcher.pid)
        for pid in (launcher.pid, guardian):
            os.kill(pid, signal.SIGSTOP)
        for pid in (launcher.pid, guardian):
            os.kill(pid, signal.SIGKILL)
        launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(self.await_nothing_left(5), [])

    def pids_of_ranks(self, *options):
        """What ranks print of their pids: that of their namespace, and what their host calls it."""
        code, out, err = self.run_job("-n", 2, "--tee", 1, *options, "sh", "-c",
                                      "echo $$ ${MUSTER_HOST_PID:-none}")
        self.assertEqual(code, 0, err)
        return [line.split(": ")[1].split() for line in out.splitlines()], err

    @unittest.skipUnless(MAY_MAKE_ONE, "this process may not make a PID namespace")
    def test_ranks_know_their_pids_on_the_host(self):
        pids, _ = self.pids_of_ranks("--pid-namespace", "always")
        for own, told in pids:
            inner, outer = told.split(":")
            self.assertEqual(own, inner)
            self.assertNotEqual(own, outer)

    @unittest.skipUnless(MAY_MAKE_ONE, "this process may not make a PID namespace")
    def test_a_failed_rank_is_told_of_with_its_pid_on_the_host(self):
        code, _, err = self.sh("test $RANK = 1 && { echo $MUSTER_HOST_PID >&2; exit 3; }; sleep 60")
        self.assertEqual(code, 3)
        outer = err.splitlines()[-1].split(":")[1]
        self.assertIn(f", pid {outer})", err)

    def test_without_one_pids_are_those_of_the_host(self):
        pids, _ = self.pids_of_ranks("--pid-namespace", "never")
        self.assertEqual({told for _, told in pids}, {"none"})

    @unittest.skipUnless(MAY_MAKE_ONE, "this process may not make a PID namespace")
    def test_in_one_only_its_own_processes_are_seen(self):
        code, out, err = self.run_job("-n", 1, "sh", "-c", "ls /proc | grep -c '^[0-9]'; exit 0")
        self.assertEqual(code, 0, err)
        self.assertLess(int(out), 6)

    def as_nobody(self, *options):
        """A job that somebody else starts, who may not make namespaces."""
        self.folder.chmod(0o711)
        self.own.chmod(0o777)
        program = self.folder / "musterrun"
        shutil.copy(job_case.PROGRAMS["musterrun"], program)
        done = subprocess.run(
            [*AS_NOBODY, program, "-v", "-n", "1", *options, "sh", "-c",
             "echo ${MUSTER_HOST_PID:-none}; id -u"],
            env=self.environment(), text=True, capture_output=True, check=False,
            timeout=job_case.KILL_TIMEOUT_S)
        return done.returncode, done.stdout.split(), done.stderr

    @unittest.skipUnless(os.geteuid() == 0, "only root may become somebody else")
    def test_who_may_not_make_one_goes_on_without(self):
        code, out, err = self.as_nobody()
        self.assertEqual((code, out), (0, ["none", str(NOBODY)]), err)
        self.assertIn("no PID namespace", err)

    @unittest.skipUnless(MAY_BE_ADMINISTRATOR, "this kernel gives no user namespaces")
    def test_who_insists_gets_one_in_a_user_namespace(self):
        if b"__tsan_init" in Path(job_case.PROGRAMS["musterrun"]).read_bytes():
            self.skipTest("ThreadSanitizer has a thread: such a process gets no user namespace")
        code, out, err = self.as_nobody("--pid-namespace", "always")
        self.assertEqual((code, out[1]), (0, str(NOBODY)), err)
        self.assertIn(":", out[0])

    @unittest.skipUnless(os.geteuid() == 0 and Path("/proc/sys/user/max_user_namespaces").exists(),
                         "only root may change how many user namespaces there may be")
    def test_where_there_can_be_none_who_insists_is_told_why(self):
        # In a user namespace of its own, where that limit may be changed without harm.
        limited = ["unshare", "--user", "--map-root-user", "sh", "-c",
                   "echo 0 > /proc/sys/user/max_pid_namespaces; exec \"$@\"", "sh"]
        done = subprocess.run([*limited, job_case.PROGRAMS["musterrun"], "-n", "1",
                               "--pid-namespace", "always", "true"], env=self.environment(),
                              text=True, capture_output=True, check=False,
                              timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("unshare", done.stderr)
        self.assertIn("--pid-namespace auto", done.stderr)


if __name__ == "__main__":
    job_case.PROGRAMS["musterrun"] = sys.argv.pop(1)
    unittest.main(verbosity=2)
