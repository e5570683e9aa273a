"""Makes the page of what bench/runtime/run.py has found.

runtime_report.py FOUND.json FOLDER   writes runtime.json, which is the summary, and runtime.md,
                                      which is made of the summary alone. Prints the targets, and
                                      which are met. FOUND.json may be a summary, too.
"""

import sys
from pathlib import Path

from figures import Figures, read, summary, text_of, union
from report import LOAD_MAX, number, table

TITLES = {
    "synchronize_value": "A value of rank 0 for all ranks",
    "all_reduce": "all_reduce of float32",
    "gather": "A gather through shared memory",
}
NOTES = {
    "synchronize_value": [
        "An int64. muster: `synchronize_value`, with `musterd` as a process of its own. gloo: a "
        "broadcast by muster-gloo. torch_gloo: `torch.distributed.broadcast`. torch_tcpstore: "
        "rank 0 sets a counted key, the others get it; rank 0 hosts the server, and does not wait "
        "for anybody.",
        "",
        "`round_us`: back to back, so rank 0 runs ahead where its call does not wait. `alone`: "
        "rank 0 calls when all others wait, until the last one has the value."],
    "all_reduce": [
        "In place. shared_memory: `all_reduce_tensor`. gloo: the communicator of muster-gloo, in "
        "the same processes, in turns. torch_gloo: `torch.distributed.all_reduce`. All back to "
        "back."],
    "gather": [
        "shared_memory: `with_gathered_tensors`, until the body runs on the first rank and has "
        "all. memcpy: the ranks that write, at the same time, each copy as many bytes into a new "
        "file in /dev/shm that they have mapped. The first rank's own tensor is not copied in "
        "either. The processor works as long as that for every one of the ranks that write, so "
        "this is the speed of all together on the cores of this machine."],
}
# The columns of a question, each of every subject: name and head.
COLUMNS = {
    "synchronize_value": [("round_us", "µs a round"), ("p50_us", "p50"), ("p99_us", "p99"),
                          ("alone_p50_us", "alone, p50"), ("alone_p99_us", "alone, p99"),
                          ("cpu_us", "CPU µs a round, all processes")],
    "gather": [("wall_ms", "ms"), ("written_gb_per_s", "GB/s written")],
}
OURS = {"synchronize_value": "muster", "all_reduce": "shared_memory", "gather": "shared_memory"}
# By which they are compared.
COMPARED = {"synchronize_value": "alone_p50_us", "all_reduce": "round_us", "gather": "wall_ms"}


def bytes_text(count):
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            return f"{number(count / (1 << power))} {unit}"
    return f"{count} B"


def given(row):
    return [bytes_text(value) if name == "bytes" else number(value)
            for name, value in row.parameters.items()]


def cases(figures, question):
    """The rows of each case, by subject."""
    found = {}
    for row in figures.of(question):
        found.setdefault(tuple(row.parameters.items()), {})[row.subject] = row
    return list(found.values())


def times(ours, other, name):
    return f"{other.median(name) / ours.median(name):.2f}" if ours and other else "–"


def table_by_case(figures, question):
    """A line for each case, with the compared value of each subject, and its processor time."""
    subjects = union([row.subject] for row in figures.of(question))
    ours, compared = OURS[question], COMPARED[question]
    others = [name for name in subjects if name != ours]
    heads = (list(figures.of(question)[0].parameters) + [f"{name}, µs" for name in subjects]
             + [f"{name} / {ours}" for name in others]
             + [f"{name}, CPU µs" for name in subjects])
    lines = []
    for rows in cases(figures, question):
        def cell(subject, name, rows=rows):
            return number(rows[subject].median(name)) if subject in rows else "–"
        lines.append(given(next(iter(rows.values())))
                     + [cell(subject, compared) for subject in subjects]
                     + [times(rows.get(ours), rows.get(name), compared) for name in others]
                     + [cell(subject, "cpu_us") for subject in subjects])
    return table(heads, lines)


def table_by_row(figures, question):
    """A line for each case and subject."""
    ours, compared = OURS[question], COMPARED[question]
    columns = COLUMNS[question]
    of_compared = next(head for name, head in columns if name == compared)
    heads = (list(figures.of(question)[0].parameters) + ["by"] + [head for _, head in columns]
             + [f"{of_compared}, against {ours}"])
    lines = [given(row) + [row.subject] + [number(row.median(name)) for name, _ in columns]
             + [times(rows.get(ours), row, compared)]
             for rows in cases(figures, question) for row in rows.values()]
    return table(heads, lines)


def markdown(figures):
    machine = figures.machine
    yield "# Calls of muster-runtime"
    yield ""
    yield ("Made by `tools/dev bench --runtime --peers` (" + figures.extent + "), "
           + machine["date"] + ". Each rank is a process of this machine. The programs take turns, "
           "each time with new processes; a figure is the median of all turns. "
           "[README.md](README.md) says more.")
    yield ""
    minutes = sum(figures.seconds.values()) / 60
    yield from table(["machine", ""], [[name.replace("_", " "), str(value)]
                                       for name, value in machine.items() if name != "date"]
                     + [[name, version] for name, version in figures.programs.items()]
                     + [["the run took", f"{minutes:.1f} min"]])
    if float(machine["load_at_start"]) > LOAD_MAX:
        yield ""
        yield ("**Something else was at work when this began, or had just been.** If it went on, "
               "times are longer than they should be.")
    if figures.verdicts():
        yield ""
        yield "## Targets"
        yield ""
        yield from table(["what", "target", "measured", "met"],
                         [[one.what, one.target, one.measured, "yes" if one.is_met else "**no**"]
                          for one in figures.verdicts()])
    for question in figures.questions():
        yield ""
        yield f"## {TITLES[question]}"
        yield ""
        yield from NOTES[question]
        yield ""
        yield from (table_by_row if question in COLUMNS else table_by_case)(figures, question)
    if figures.not_measured:
        yield ""
        yield "## Not measured"
        yield ""
        yield from table(["question", "why"],
                         [[one["question"], one["why"]] for one in figures.not_measured])


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    of_summary = summary(read(sys.argv[1]))
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    figures = Figures(of_summary)
    (folder / "runtime.md").write_text("\n".join(markdown(figures)) + "\n", encoding="utf-8")
    (folder / "runtime.json").write_text(text_of(of_summary), encoding="utf-8")
    for one in figures.verdicts():
        print(f"{'met ' if one.is_met else 'MISSED'}  {one.what}: {one.measured}, "
              f"target {one.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
