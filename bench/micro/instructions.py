"""How many instructions the parts of the server take that have no sockets: the same on every run,
also where other programs disturb the times. Needs valgrind.

instructions.py REPEAT [WORD...]   prints them beside the baseline; with words only the work whose
                                   name has one of them
instructions.py REPEAT --check     the gate: exits 1 where something takes more than 5 % above the
                                   baseline, or is not in both; 77 where nothing can be compared
instructions.py REPEAT --accept    makes what is counted now the baseline of this toolchain

The baseline is baseline.json: for each toolchain, as REPEAT names it, instructions by work.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BASELINE = Path(__file__).resolve().parent / "baseline.json"
TIMES = 500
PER_CENT_MAX = 5
SKIPPED = 77
ACCEPT = "tools/dev bench --micro --accept"
# The libc has several forms of memcpy and its like, and takes the one that suits the processor;
# without these features they all take the same. What each form is for is in glibc's manual.
SAME_EVERYWHERE = ("glibc.cpu.hwcaps="
                   "-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load")


def lines_of(repeat):
    """What has built it, and the names of the work that it can do."""
    done = subprocess.run([repeat], check=True, capture_output=True, text=True)
    toolchain, *names = done.stdout.splitlines()
    return toolchain, names


def count(repeat, name):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               "--collect-atstart=no", "--toggle-collect=muster_bench_counted*",
               repeat, name, str(TIMES)]
    environment = {**os.environ, "GLIBC_TUNABLES": SAME_EVERYWHERE}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    collected = int(re.search(r"Collected : (\d+)", done.stderr).group(1))
    if collected == 0:
        raise RuntimeError(f"callgrind has counted nothing of {name}")
    return round(collected / int(done.stdout), 1)


def count_all(repeat, names):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(lambda name: count(repeat, name), names)))


def baselines(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def per_cent(baseline, actual):
    return 100 * (actual - baseline) / baseline


def table(counted, baseline):
    yield "| work | instructions | baseline | change |"
    yield "|---|---:|---:|---:|"
    for name, actual in counted.items():
        before = baseline.get(name)
        beside = f"{before:,.0f} | {per_cent(before, actual):+.1f} %" if before else "– | –"
        yield f"| {name} | {actual:,.0f} | {beside} |"


def failures(counted, baseline):
    """What the gate does not let pass, a line each."""
    for name, actual in counted.items():
        if name not in baseline:
            yield f"{name}: it has no baseline; {actual:,.0f} instructions now"
        elif per_cent(baseline[name], actual) > PER_CENT_MAX:
            yield (f"{name}: {actual:,.0f} instructions, the baseline is {baseline[name]:,.0f}: "
                   f"{per_cent(baseline[name], actual):+.1f} %, at most +{PER_CENT_MAX} % may be")
    for name in baseline.keys() - counted.keys():
        yield f"{name}: it has a baseline, but there is no such work any more"


def improvements(counted, baseline):
    for name, actual in counted.items():
        if name in baseline and per_cent(baseline[name], actual) < -PER_CENT_MAX:
            yield (f"{name}: {actual:,.0f} instructions, the baseline is {baseline[name]:,.0f}: "
                   f"{per_cent(baseline[name], actual):+.1f} %")


def check(counted, baseline):
    """Prints what has become of each work; the exit status of the gate."""
    print("\n".join(table(counted, baseline)))
    worse = sorted(failures(counted, baseline))
    better = sorted(improvements(counted, baseline))
    if better:
        print(f"\nBetter than the baseline by more than {PER_CENT_MAX} %; to keep it so: {ACCEPT}")
        print("\n".join(better))
    if worse:
        print(f"\nNot as the baseline says; if it has to be so: {ACCEPT}")
        print("\n".join(worse))
    return 1 if worse else 0


def accept(path, toolchain, counted):
    """Those of other toolchains stay."""
    kept = baselines(path)
    kept[toolchain] = counted
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"\n{path.name} has now {len(counted)} figures of: {toolchain}")


def skip(why):
    print(f"skipped: {why}")
    return SKIPPED


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repeat")
    parser.add_argument("word", nargs="*", default=[""])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="another file")
    given = parser.parse_args(arguments)
    toolchain, names = lines_of(given.repeat)
    known = baselines(given.baseline)
    if given.check and toolchain not in known:
        return skip(f"{given.baseline.name} has no figures of: {toolchain}")
    if not shutil.which("valgrind"):
        return skip("there is no valgrind")
    if given.check or given.accept:
        counted = count_all(given.repeat, names)
    else:
        asked = [name for name in names if any(word in name for word in given.word)]
        counted = count_all(given.repeat, asked)
    if given.check:
        return check(counted, known[toolchain])
    print("\n".join(table(counted, known.get(toolchain, {}))))
    if given.accept:
        accept(given.baseline, toolchain, counted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
