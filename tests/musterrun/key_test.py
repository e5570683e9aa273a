"""Who reaches the server of a job: who has the key of its environment, or is its user. And who
reaches the store that it has for torch."""

import os
import socket
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


NOBODY = 65534


class KeyCase(JobCase):
    def key(self, name):
        path = self.folder / name
        with path.open("w") as file:
            subprocess.run([PROGRAMS["musterctl"], "keygen"], stdout=file, check=True,
                           stderr=subprocess.DEVNULL)
        return {"MUSTER_CREDENTIAL_FILE": str(path)}


class KeyOfJob(KeyCase):
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

    def get(self, store, name_space, *, user=None, **more):
        """What somebody beside the job is told."""
        return subprocess.run(
            [PROGRAMS["musterctl"], "--server", store, "--namespace", name_space, "get", "rank-1"],
            env=self.environment(**more), user=user, capture_output=True, text=True, check=False,
            timeout=job_case.KILL_TIMEOUT_S)

    def told_as_nobody(self, store, name_space):
        try:
            return self.get(store, name_space, user=NOBODY) if os.geteuid() == 0 else None
        except PermissionError:  # of a folder on the way to the program
            return None

    def test_who_has_the_key_uses_the_store_and_a_stranger_does_not(self):
        key = self.key("key")
        launcher, store, name_space = self.start_job(env=key)
        for rank in (0, 1):
            self.assertEqual((self.folder / f"said-{rank}").read_text(), "")
        operator = self.get(store, name_space, **key)
        self.assertEqual((operator.returncode, operator.stdout), (0, "here"), operator.stderr)
        for stranger in ({}, self.key("another")):
            told = self.get(store, name_space, **stranger)
            self.assertEqual((told.returncode != 0, told.stdout), (True, ""))
            self.assertIn("permission_denied", told.stderr)
        self.end_job(launcher)

    def test_without_a_key_the_user_of_the_job_reaches_it_and_no_other_does(self):
        launcher, store, name_space = self.start_job()
        self.assertTrue(store.startswith("unix:@musterrun-"), store)
        operator = self.get(store, name_space)
        self.assertEqual((operator.returncode, operator.stdout), (0, "here"), operator.stderr)
        told = self.told_as_nobody(store, name_space)
        self.end_job(launcher)
        if told is None:
            self.skipTest("another user cannot be tried: only root can, where he may run it")
        self.assertEqual((told.returncode != 0, told.stdout), (True, ""))
        self.assertIn("permission_denied", told.stderr)


class StoreOfTorch(KeyCase):
    """Of two nodes that meet at a server which asks for a key."""

    TOLD = ("echo $MASTER_ADDR $TORCHELASTIC_USE_AGENT_STORE >> {folder}/told; "
            "test $TORCHELASTIC_RESTART_COUNT = 1")

    def setUp(self):
        super().setUp()
        self.with_key = self.key("key")
        self.server = subprocess.Popen(
            [PROGRAMS["musterd"], "--listen", "127.0.0.1:0", "--credentials",
             self.with_key["MUSTER_CREDENTIAL_FILE"]],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end_server)
        self.address = self.server.stdout.readline().split()[-1]

    def end_server(self):
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()

    def told(self, *options):
        """returns  what all ranks of two attempts are told, and what the launchers say"""
        (self.folder / "told").unlink(missing_ok=True)
        nodes = [self.start("--rendezvous", self.address, "--job-id", "job", "--nnodes", 2, "-n", 1,
                            "--node-rank", rank, "--max-restarts", 1, *options, "sh", "-c",
                            self.TOLD.format(folder=self.folder), env=self.with_key)
                 for rank in (0, 1)]
        errors = [node.communicate(timeout=job_case.KILL_TIMEOUT_S)[1] for node in nodes]
        self.assertEqual([node.returncode for node in nodes], [0, 0], errors)
        return set((self.folder / "told").read_text().splitlines()), errors

    def test_s9_with_a_key_there_is_none_beyond_loopback_unless_somebody_asks_for_it(self):
        name = socket.gethostname()
        for options, expected, times in (((), "127.0.0.1 True", 0),
                                         (("--local-addr", name), f"{name} False", 1),
                                         (("--local-addr", name, "--allow-unauthenticated"),
                                          f"{name} False", 1),
                                         (("--local-addr", name, "--tcpstore", "on"),
                                          f"{name} True", 0),
                                         (("--tcpstore", "off"), "127.0.0.1 False", 0)):
            with self.subTest(options=options):
                told, errors = self.told(*options)
                self.assertEqual(told, {expected}, errors)
                found = [each.count("there is no TCPStore for torch") for each in errors]
                self.assertEqual(found, [times, 0], errors)


if __name__ == "__main__":
    PROGRAMS["musterrun"], PROGRAMS["musterd"], PROGRAMS["musterctl"] = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
