"""torchrun's own cases, T1 to T26 of README.md, with its command lines and --compat torchrun. Each
rank makes a file with its number: they are those of all ranks."""

import os
import socket
import sys
import unittest
from pathlib import Path

from job_case import PROGRAMS
from nodes_test import NodeCase

# What torchrun's tests give, and what has no effect here.
TAKEN = ("--monitor-interval=1", "--start-method=spawn")
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}


class TorchrunCase(NodeCase):
    def setUp(self):
        super().setUp()
        self.ranks = self.folder / "ranks"
        self.ranks.mkdir()
        self.script = self.folder / "touch.py"
        self.script.write_text("import os, pathlib, sys\n"
                               "pathlib.Path(sys.argv[1], os.environ['RANK']).touch()\n"
                               "print('creating', os.environ['RANK'])\n")
        self.shell_script = self.folder / "touch.sh"
        self.shell_script.write_text('#!/bin/sh\ntouch "$1/$RANK"\n')
        self.shell_script.chmod(0o755)

    def torchrun(self, *arguments, env=None):
        return self.start("--compat", "torchrun", *arguments,
                          env={"PYTHON_EXEC": sys.executable, **(env or {})})

    def ended(self, *arguments, env=None):
        """returns  exit code, standard output, standard error"""
        launcher = self.torchrun(*arguments, env=env)
        (code,), out, err = self.end_of([launcher])
        return code, out, err

    def runs(self, count, *arguments, env=None):
        """As many ranks as that make their files."""
        code, out, err = self.ended(*arguments, self.ranks, env=env)
        self.assertEqual(code, 0, err)
        self.made_by(count)
        return out, err

    def made_by(self, count):
        self.assertEqual({path.name for path in self.ranks.iterdir()}, set(map(str, range(count))))
        for path in self.ranks.iterdir():
            path.unlink()

    def is_refused(self, why, *arguments, env=None):
        code, out, err = self.ended(*arguments, self.ranks, env=env)
        self.assertEqual((code, out), (2, ""), err)
        self.assertIn(why, err)
        self.made_by(0)

    def at_a_rendezvous(self, conf):
        return ("--rdzv-backend=c10d", f"--rdzv-endpoint={self.address}", f"--rdzv-conf={conf}",
                "--rdzv-id=run", *TAKEN)


class Programs(TorchrunCase):
    def test_t01_a_script_of_python(self):
        self.runs(4, "--nnodes=1", "--nproc-per-node=4", "--rdzv-id=run", *TAKEN, self.script)

    def test_t02_a_program_that_is_no_python_and_no_module(self):
        options = ("--nnodes=1", "--nproc-per-node=4", "--rdzv-id=run", *TAKEN, "--no-python")
        self.is_refused("--module and --no-python exclude", *options, "--module", self.shell_script)
        self.runs(4, *options, self.shell_script)

    def test_t03_one_process_where_no_number_is_given(self):
        self.runs(1, "--nnodes=1", *TAKEN, "--no-python", self.shell_script,
                  env={"LOCAL_WORLD_SIZE": "4"})

    def test_t04_options_that_are_variables(self):
        given = {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "4", "PET_RDZV_ID": "run",
                 "PET_MONITOR_INTERVAL": "1", "PET_START_METHOD": "spawn", "PET_NO_PYTHON": "1"}
        self.is_refused("PET_MODULE and PET_NO_PYTHON exclude", self.shell_script,
                        env={**given, "PET_MODULE": "1"})
        self.runs(4, self.shell_script, env={**given, "PET_MODULE": "0"})

    def test_t14_where_rank_0_listens_is_given(self):
        out, _ = self.runs(4, "--nproc-per-node=4", "--node-rank=0", "--master-addr=localhost",
                           *TAKEN, self.script)
        self.assertEqual(out.count("creating"), 4)

    def test_t16_a_script_whatever_its_name(self):
        script = self.script.rename(self.folder / "touch")
        self.runs(4, "--run-path", "--nnodes=1", "--nproc-per-node=4", *TAKEN, script)


class Counts(TorchrunCase):
    def count(self, number):
        return ("--nnodes=1", f"--nproc-per-node={number}", *TAKEN, "--no-python",
                self.shell_script)

    def test_t05_without_gpus_auto_is_the_number_of_processors(self):
        self.runs(len(os.sched_getaffinity(0)), *self.count("auto"), env=NO_GPU)

    def test_t06_a_number(self):
        self.runs(4, *self.count(4))

    def test_t07_a_word_that_is_no_number(self):
        self.is_refused('"unknown" is no number of processes', *self.count("unknown"))

    def test_t08_with_gpus_gpu_and_auto_are_their_number(self):
        for word in ("gpu", "auto"):
            self.runs(3, *self.count(word), env={"CUDA_VISIBLE_DEVICES": "0,1,2"})

    def test_t15_xpus_are_refused_since_nobody_counts_them(self):
        self.is_refused("say how many processes", *self.count("xpu"))

    def test_t17_least_and_most_nodes(self):
        place = self.at_a_rendezvous("timeout=5")
        for nodes in ("1", "2:20"):
            self.assertEqual(self.ended("--dry-run", f"--nnodes={nodes}", *place, "true")[0], 0)
        self.is_refused('"2:20:30" is no number of nodes', "--nnodes=2:20:30", *place, "true")


class Rendezvous(TorchrunCase):
    ELASTIC = ("--nnodes=1:2", "--nproc-per-node=4")
    TIMES = "join_timeout=30,last_call_timeout=1,timeout=30"

    def test_t09_one_node_where_two_may_come(self):
        self.runs(4, *self.ELASTIC, *self.at_a_rendezvous(self.TIMES), self.script)

    def test_t10_a_rank_that_fails_is_told_once(self):
        self.script.write_text("raise SystemExit('broken')\n")
        code, _, err = self.ended(*self.ELASTIC, *self.at_a_rendezvous(self.TIMES),
                                  "--max-restarts=0", self.script)
        self.assertEqual(code, 1)
        self.assertEqual(err.count("its last output:\nbroken\n"), 1, err)

    def test_t12_one_node_alone(self):
        self.runs(4, "--nnodes=1", "--nproc-per-node=4", "--standalone", *TAKEN, self.script)

    def test_t13_two_nodes_of_four_ranks(self):
        launchers = [self.torchrun(*self.ELASTIC, *self.at_a_rendezvous(self.TIMES), self.script,
                                   self.ranks) for _ in range(2)]
        codes, _, err = self.end_of(launchers)
        self.assertEqual(codes, [0, 0], err)
        self.made_by(8)


class Output(TorchrunCase):
    def launched(self, *options):
        self.script.write_text("import os\nprint('TORCHELASTIC_RUN_ID' in os.environ)\n")
        return self.ended("--run-path", "--nproc-per-node=1", "--monitor-interval=1", *options,
                          self.script)

    def test_t19_a_program_knows_that_it_was_launched(self):
        self.assertEqual(self.launched()[:2], (0, "True\n"))

    def test_t20_also_with_the_default_of_logs_specs(self):
        self.assertEqual(self.launched("--logs_specs=default")[:2], (0, "True\n"))

    def test_t21_other_logs_specs_are_refused(self):
        code, out, err = self.launched("--logs_specs=DOESNOT_EXIST")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--logs_specs: \"DOESNOT_EXIST\"", err)

    def test_t25_the_beginning_of_lines_is_a_template(self):
        form = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[${role_name} rank${rank} $local_rank]: "}
        out, _ = self.runs(4, "--nproc-per-node=4", "--redirects=3", "--tee=3", *TAKEN, self.script,
                           env=form)
        self.assertEqual(sorted(out.splitlines()), [f"[default rank{rank} {rank}]: creating {rank}"
                                                    for rank in range(4)])

    def test_the_beginning_of_lines_is_an_option_of_torchrun_2_15(self):
        out, _ = self.runs(2, "--nproc-per-node=2", "--redirects=3", "--tee=3", *TAKEN,
                           "--log-line-prefix-template", "${hostname} $rank: ", self.script)
        self.assertEqual(sorted(out.splitlines()),
                         [f"{socket.gethostname()} {rank}: creating {rank}" for rank in range(2)])

    def test_t26_a_virtual_local_rank_is_refused(self):
        self.is_refused("--virtual-local-rank", "--nproc-per-node=2", "--virtual-local-rank",
                        self.script)


if __name__ == "__main__":
    for name in ("musterrun", "musterd", "musterctl"):
        PROGRAMS[name] = sys.argv.pop(1)
    unittest.main(verbosity=2)
