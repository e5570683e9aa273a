"""Who reaches the server of a job: who has the key of its environment, or is its user. And who
reaches the store that it has for torch. With a certificate: a job, and musterctl."""

import json
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


class Certificates(KeyCase):
    """A musterd that knows its clients by certificates, as options and variables name them."""

    OPTIONS = ("--certificate-file", "--certificate-key-file", "--authorities-file")
    VARIABLES = ("MUSTER_CERTIFICATE_FILE", "MUSTER_CERTIFICATE_KEY_FILE",
                 "MUSTER_AUTHORITIES_FILE")

    def setUp(self):
        super().setUp()
        maker = subprocess.Popen([PROGRAMS["certificates"]], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(maker.communicate)
        made = json.loads(maker.stdout.readline())
        self.files = (made["client"], made["client_key"], made["authority"])
        self.foreign = (made["stranger"], made["stranger_key"], made["authority"])
        credentials = self.folder / "credentials"
        credentials.touch(0o600)
        credentials.write_text("certificate:client * all as=team/job\n", encoding="utf-8")
        server = subprocess.Popen(
            [PROGRAMS["musterd"], "--listen", "127.0.0.1:0", "--credentials", str(credentials),
             "--tls-certificate", made["server"], "--tls-key", made["server_key"],
             "--tls-client-authorities", made["authority"]],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, server)
        self.address = server.stdout.readline().split()[-1]

    @staticmethod
    def end(server):
        server.kill()
        server.wait()
        server.stdout.close()

    def options(self, files):
        return [word for pair in zip(self.OPTIONS, files) for word in pair]

    def variables(self, files):
        return dict(zip(self.VARIABLES, files))

    def whoami(self, *options, **variables):
        return subprocess.run(
            [PROGRAMS["musterctl"], "--server", self.address, "--json", *options, "whoami"],
            env=self.environment(**variables), capture_output=True, text=True, check=False,
            timeout=job_case.KILL_TIMEOUT_S)

    def run_ranks(self, *options, env):
        """Of one node, which meet at that server; each shows whom it is taken for."""
        told = self.run_job("--rendezvous", self.address, "--job-id", "job", "-n", 2, "--stdout",
                            f"{self.folder}/said-{{rank}}", *options, "sh", "-c",
                            '"$0" --server "$MUSTER_STORE" --json whoami > $1/told-$RANK',
                            PROGRAMS["musterctl"], self.folder, env=env)
        return told

    def test_options_and_variables_name_the_files_for_musterctl(self):
        for options, variables in ((self.options(self.files), {}),
                                   ([], self.variables(self.files)),
                                   # an option counts before the environment, whatever that names
                                   (self.options(self.files), self.variables(self.foreign)),
                                   (self.options(self.files), self.key("key"))):
            with self.subTest(options=options, variables=variables):
                told = self.whoami(*options, **variables)
                self.assertEqual(told.returncode, 0, told.stderr)
                who = json.loads(told.stdout)
                self.assertEqual((who["identity"], who["connection"]), ("team/job", "tls"))
                self.assertEqual(told.stderr, "")  # no variable is unknown
        self.assertEqual(self.whoami(*self.options(self.foreign)).returncode, 1)
        both = self.whoami(**self.key("key"), **self.variables(self.files))
        self.assertEqual(both.returncode, 2, both.stderr)
        self.assertIn("MUSTER_CREDENTIAL_FILE and MUSTER_CERTIFICATE_FILE", both.stderr)

    def test_a_file_that_cannot_be_used_is_named_with_exit_code_2(self):
        for place in range(3):
            for wrong in (str(self.folder / "none"), str(self.folder / "credentials")):
                files = [*self.files]
                files[place] = wrong
                for options, variables in ((self.options(files), {}),
                                           ([], self.variables(files))):
                    with self.subTest(options=options, variables=variables):
                        told = self.whoami(*options, **variables)
                        self.assertEqual(told.returncode, 2, told.stderr)
                        self.assertIn(f"{wrong}: ", told.stderr)
                code, _, errors = self.run_ranks(*self.options(files), env={})
                self.assertEqual(code, 2, errors)
                self.assertIn(f"{wrong}: ", errors)

    def test_a_job_and_its_ranks_have_the_certificate_of_an_option_or_a_variable(self):
        for options, variables in ((self.options(self.files), {}),
                                   ([], self.variables(self.files)),
                                   (self.options(self.files), self.key("key"))):
            with self.subTest(options=options, variables=variables):
                code, out, errors = self.run_ranks(*options, env=variables)
                self.assertEqual(code, 0, out + errors)
                for rank in (0, 1):
                    who = json.loads((self.folder / f"told-{rank}").read_text())
                    self.assertEqual(who["identity"], "team/job")
                    (self.folder / f"told-{rank}").unlink()

    def test_a_launcher_with_a_certificate_hosts_no_server_and_says_so(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))  # it does not listen, and no other program gets the port
            port = free.getsockname()[1]
            launcher = self.start("--rendezvous", f"127.0.0.1:{port}", "--job-id", "job", "-n", 1,
                                  *self.options(self.files), "true")
            line = launcher.stderr.readline()
            launcher.terminate()
            launcher.communicate(timeout=job_case.KILL_TIMEOUT_S)
        self.assertIn(f"no musterd answers at 127.0.0.1:{port}", line)
        self.assertIn("hosts no server", line)


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
    for name, path in zip(("musterrun", "musterd", "musterctl", "certificates"), sys.argv[1:]):
        PROGRAMS[name] = path
    unittest.main(argv=sys.argv[:1])
