"""Plants known bugs one at a time and prints which of them live through the quick tests.

tools/dev zoo             every bug: the test suites, then the simulation
tools/dev zoo --simulated those that the simulation has to find, by it alone
tools/dev zoo NAME...     these bugs, whatever is known of them, or all of these pages (core_keys)
tools/dev zoo --table     what is known of this commit, as a table; runs nothing
tools/dev zoo --list      the bugs

One build in build/zoo has all of them: a copy of the project with the edits of tests/zoo/*.txt (see
tests/zoo/plant.py). A run looks for each bug first in its room's own test and suites, then in the
others, and ends at the first test that fails. A bug of the core, of the client's protocol or of the
launcher's decisions has to be found by the simulation as well, unless it is marked. Results are
kept by the tree's state in build/zoo/results, so a run that was stopped goes on. Fails if a bug
lives of which that is not known, or if one is found that is marked as a survivor.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import plant

sys.path.append(str(plant.ROOT / "tools"))
import deep

FOLDER = plant.ROOT / "build" / "zoo"
TREE, BUILD = FOLDER / "tree", FOLDER / "build"
RESULTS = FOLDER / "results"
# Not with assertions of the build's own: what a test checks has to find the bug.
OPTIONS = ["--wrap-mode=nodownload", "-Doptimization=1", "-Ddebug=false",
           "-Ddefault_library=static", "-Dunity=on", "-Dunity_size=1000", "-Dtests=enabled",
           "-Dexamples=enabled", "-Dgloo=auto", "-Dpython=auto"]
SUITES_LIMIT_S = 900
SIMULATION_LIMIT_S = 400
# The suites that a bug of a room meets, by what its page's name begins with.
SUITES = {
    "auth": [["unit"]],
    "bindings_c": [["c"]],
    "bindings_python": [["python"]],
    "bindings_torch": [["torch"]],
    "core": [["unit", "script"]],
    "client_protocol": [["unit", "script"]],
    "figures": [["unit", "script"], ["http"]],
    "wire": [["unit", "script"], ["e2e"]],
    "net": [["net"], ["unit", "script"], ["api", "e2e"]],
    "server": [["unit", "script"], ["net"], ["e2e"]],
    "server_http": [["unit"], ["http"]],
    "client": [["unit", "script"], ["api", "net"], ["e2e"], ["stress"]],
    "communicator": [["nccl", "gloo"], ["unit"]],
    "nccl": [["nccl"], ["unit"]],
    "gloo": [["gloo"]],
    "json": [["unit"], ["c"], ["e2e"]],
    "launch": [["script"], ["musterrun"], ["e2e"]],
    "leaks": [["stress"]],
    "runtime": [["runtime", "script"]],
    "tensors": [["runtime"], ["script"]],
    "shared": [["runtime"]],
}
# What most likely finds a room's bugs, in seconds, is run before.
OF_NCCL = [["unit_nccl"], ["nccl_blocking", "nccl_calls", "nccl_doubles", "nccl_rings",
                           "nccl_scaled", "nccl_unique_id"], ["nccl_communicator"]]
OWN_TESTS = {
    "auth": [["unit_auth"]],
    "client": [["e2e_client"]],
    "client_tls": [["e2e_tls"]],
    "communicator": OF_NCCL,
    "json": [["unit_json"], ["e2e_musterctl"]],
    "launch": [["script_launch"], ["musterrun_surroundings"], ["e2e_musterrun", "e2e_musterd"]],
    "nccl": OF_NCCL,
    "server_door": [["e2e_credential_commands", "e2e_door_of_musterd"], ["stress_reloads"]],
    "server_http": [["unit_http", "unit_live", "unit_server"]],
    "tensors": [["runtime_tensor_parts"], ["runtime_tensors"]],
    "shared": [["runtime_shared", "runtime_file_lock"]],
}


def suites_of(page):
    longest = max((room for room in SUITES if page.startswith(room)), key=len, default=None)
    if longest is None:
        raise plant.Wrong(f"{page}.txt: no suites are named for it in tests/zoo/zoo.py")
    return SUITES[longest]


def programs_of(suites):
    """The targets of ninja that tests of these suites need."""
    info = BUILD / "meson-info"
    files = {target["id"]: target["filename"]
             for target in json.loads((info / "intro-targets.json").read_text())}
    made = {file for all_of_target in files.values() for file in all_of_target}
    needed = set()
    for test in json.loads((info / "intro-tests.json").read_text()):
        of_test = {suite.split(":")[-1] for suite in test["suite"]}
        if "sources" in of_test or not suites & of_test:
            continue
        needed.update(file for target in test["depends"] for file in files[target])
        needed.update(made.intersection(test["cmd"]))
    return sorted(os.path.relpath(file, BUILD) for file in needed)


def build(bugs, suites):
    """Plants all, configures, and builds what is needed to look for these bugs."""
    plant.plant(TREE)
    options = BUILD / "zoo-options"
    if not options.is_file() or options.read_text() != "\n".join(OPTIONS):
        shutil.rmtree(BUILD, ignore_errors=True)
        subprocess.run(["meson", "setup", str(BUILD), str(TREE), *OPTIONS],
                       check=True, stdout=subprocess.DEVNULL)
        options.write_text("\n".join(OPTIONS))
    subprocess.run(["ninja", "-C", str(BUILD), "build.ninja"], check=True,
                   stdout=subprocess.DEVNULL)
    programs = programs_of(suites)
    if any(bug.is_simulated for bug in bugs):
        programs.append("tests/sim/sim_zoo")
    subprocess.run(["ninja", "-C", str(BUILD), "--quiet", *programs], check=True)


def run(command, limit_s, bug):
    """The exit status, None after too long, and the output."""
    environment = {**os.environ, "MUSTER_TEST_SCALE": "0.05"}
    if bug:
        environment["MUSTER_PLANTED"] = bug
    with subprocess.Popen(command, cwd=BUILD, env=environment, text=True, start_new_session=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None, process.communicate()[0]
    return process.returncode, output


def run_suites(suites, bug):
    """The test that has failed; "" if none has."""
    return run_tests([word for suite in suites for word in ("--suite", suite)], bug)


def run_tests(which, bug):
    """which  tests by name, or arguments of `meson test` that choose them"""
    log = BUILD / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    command = ["meson", "test", "--no-rebuild", "--maxfail", "1", "--no-suite", "sources",
               "--num-processes", str(2 * (os.cpu_count() or 1)), *which]
    status, output = run(command, SUITES_LIMIT_S, bug)
    if status == 0:
        return ""
    tests = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
    for test in tests:
        if test["result"] in ("FAIL", "ERROR", "TIMEOUT"):
            return test["name"].split(" / ")[-1]
    raise plant.Wrong(f"meson test ended with {status}:\n{output[-2000:]}")


def run_simulation(bug):
    """What the simulation says of its first bad seed; "" if it has none."""
    status, output = run([str(BUILD / "tests/sim/sim_zoo"), "--bug", bug], SIMULATION_LIMIT_S, None)
    last = output.strip().splitlines()[-1] if output.strip() else ""
    return last if status == 0 else ""


def look_for(bug):
    began = time.monotonic()
    test = ""
    for own in OWN_TESTS.get(bug.page, []):
        test = test or run_tests(own, bug.name)
    for suites in suites_of(bug.page):
        test = test or run_suites(suites, bug.name)
    seed = run_simulation(bug.name) if bug.is_simulated else ""
    return {"bug": bug.name, "page": bug.page, "test": test, "simulation": seed,
            "is_simulated": bug.is_simulated, "seconds": round(time.monotonic() - began, 1)}


def lives(result):
    return not result["simulation"] if result["is_simulated"] else not result["test"]


def line_of(result):
    seed = re.match(r"seed (\d+)", result["simulation"])
    simulation = "-" if not result["is_simulated"] else f"seed {seed[1]}" if seed else "LIVES"
    test = result["test"] or ("-" if result["is_simulated"] else "LIVES")
    return f"{result['page']:16} {result['bug']:36} {test:32} {simulation:10} {result['seconds']:6}"


def known_results(path):
    if not path.is_file():
        return {}
    results = (json.loads(line) for line in path.read_text().splitlines())
    return {result["bug"]: result for result in results}


def hunt_simulated(bugs):
    """By the simulation alone, whose seeds are always the same."""
    build(bugs, set())
    alive = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for bug, seed in zip(bugs, pool.map(lambda bug: run_simulation(bug.name), bugs)):
            print(f"{bug.page:16} {bug.name:36} {seed or 'LIVES'}", flush=True)
            if not seed:
                alive.append(bug)
    for bug in alive:
        print(f"{bug.name} lives: {bug.what}")
    print(f"{len(bugs)} bugs, {len(alive)} live")
    return 1 if alive else 0


def print_table(bugs, results):
    for name in bugs:
        if name in results:
            print(line_of(results[name]))
    alive = [name for name in bugs if name in results and lives(results[name])]
    missing = [name for name in bugs if name not in results]
    print(f"{len(bugs)} bugs, {len(missing)} not tried, {len(alive)} live: {' '.join(alive)}")
    return 1 if missing or any(not bugs[name].is_survivor for name in alive) else 0


def hunt(bugs, wanted, is_again):
    """Tries what is not known yet, or everything."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{deep.state_of_tree()}.jsonl"
    results = {} if is_again else known_results(path)
    rooms = {tuple(map(tuple, suites_of(bugs[name].page))) for name in wanted}
    for suites in sorted({suites for room in rooms for suites in room}):
        if test := run_suites(suites, None):
            print(f"without a bug {test} fails")
            return 1
    for name in wanted:
        if name in results:
            continue
        results[name] = look_for(bugs[name])
        with path.open("a") as file:
            file.write(json.dumps(results[name]) + "\n")
        print(line_of(results[name]), flush=True)
    alive = [name for name in wanted if lives(results[name])]
    for name in alive:
        known = " (known)" if bugs[name].is_survivor else ""
        print(f"{name} lives{known}: {bugs[name].what}")
    found = [name for name in wanted if bugs[name].is_survivor and name not in alive]
    for name in found:
        print(f"{name} is found by {results[name]['test']}: take its mark away")
    print(f"{len(wanted)} of {len(bugs)} bugs, {len(alive)} live")
    return 1 if found or any(not bugs[name].is_survivor for name in alive) else 0


def main(arguments):
    if arguments == ["--list"]:
        return plant.main(["--list"])
    if any(argument.startswith("-") for argument in arguments) and arguments not in (
            ["--simulated"], ["--table"]):
        print(__doc__)
        return 0 if arguments == ["--help"] else 2
    try:
        if arguments == ["--table"]:
            bugs = plant.read_bugs()[0]
            return print_table(bugs, known_results(RESULTS / f"{deep.state_of_tree()}.jsonl"))
        bugs = plant.read_bugs()[0]
        known = {"--simulated", *bugs, *(bug.page for bug in bugs.values())}
        for unknown in set(arguments) - known:
            raise plant.Wrong(f"there is no bug and no page {unknown}; see tools/dev zoo --list")
        if arguments == ["--simulated"]:
            return hunt_simulated([bug for bug in bugs.values()
                                   if bug.is_simulated and not bug.is_survivor])
        wanted = list(bugs)
        if arguments:
            wanted = [name for name, bug in bugs.items() if {name, bug.page} & set(arguments)]
        of_wanted = [bugs[name] for name in wanted]
        build(of_wanted, {suite for bug in of_wanted for group in suites_of(bug.page)
                          for suite in group})
        return hunt(bugs, wanted, bool(set(arguments) & set(bugs)))
    except plant.Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
