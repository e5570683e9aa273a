"""The key of a job on one node: its ranks have it, and nobody else does."""

import subprocess
import sys
import unittest

import job_case
from job_case import JobCase, PROGRAMS

SET_AND_TELL = ('"$0" --server "$MUSTER_STORE" --namespace "$MUSTER_NAMESPACE" set '
                'rank-$RANK here > {folder}/said-$RANK 2>&1; '
                "echo $MUSTER_STORE $MUSTER_NAMESPACE > {folder}/where-$RANK.new; "
                "mv {folder}/where-$RANK.new {folder}/where-$RANK; "
                "while ! test -e {folder}/go; do sleep 0.02; done")


class KeyOfJob(JobCase):
    def start_job(self, **more):
        """returns  the launcher, and where its ranks have their store"""
        launcher = self.start("-n", 2, "sh", "-c", SET_AND_TELL.format(folder=self.folder),
                              PROGRAMS["musterctl"], **more)
        self.await_files("where-0", "where-1")
        store, name_space = (self.folder / "where-0").read_text().split()
        return launcher, store, name_space

    def end_job(self, launcher):
        (self.folder / "go").touch()
        out, err = launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertEqual(launcher.returncode, 0, out + err)

    def get(self, store, name_space, **more):
        """What somebody beside the job is told."""
        return subprocess.run(
            [PROGRAMS["musterctl"], "--server", store, "--namespace", name_space, "get", "rank-1"],
            env=self.environment(**more), capture_output=True, text=True, check=False,
            timeout=job_case.KILL_TIMEOUT_S)

    def test_ranks_use_the_store_and_a_stranger_does_not(self):
        launcher, store, name_space = self.start_job()
        for rank in (0, 1):
            self.assertEqual((self.folder / f"said-{rank}").read_text(), "")
        stranger = self.get(store, name_space)
        self.assertNotEqual(stranger.returncode, 0)
        self.assertEqual(stranger.stdout, "")
        self.assertIn("permission_denied", stranger.stderr)
        self.assertIn("MUSTER_CREDENTIAL_FILE", stranger.stderr)
        self.end_job(launcher)

    def test_another_key_is_none(self):
        launcher, store, name_space = self.start_job()
        stranger = self.get(store, name_space, MUSTER_CREDENTIAL=subprocess.run(
            [PROGRAMS["musterctl"], "keygen"], capture_output=True, text=True, check=True).stdout)
        self.assertEqual((stranger.returncode != 0, stranger.stdout), (True, ""))
        self.assertIn("permission_denied", stranger.stderr)
        self.end_job(launcher)

    def test_a_key_that_is_there_is_the_jobs(self):
        key = self.folder / "key"
        with key.open("w") as file:
            subprocess.run([PROGRAMS["musterctl"], "keygen"], stdout=file, check=True,
                           stderr=subprocess.DEVNULL)
        key.chmod(0o600)
        launcher, store, name_space = self.start_job(env={"MUSTER_CREDENTIAL_FILE": str(key)})
        operator = self.get(store, name_space, MUSTER_CREDENTIAL_FILE=str(key))
        self.assertEqual((operator.returncode, operator.stdout), (0, "here"), operator.stderr)
        self.end_job(launcher)


if __name__ == "__main__":
    PROGRAMS["musterrun"], PROGRAMS["musterd"], PROGRAMS["musterctl"] = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
