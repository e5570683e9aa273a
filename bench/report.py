"""Makes tables, plots and a summary of what muster_bench has found.

report.py FOUND.json FOLDER   writes results.json, which is the summary, and what is made of the
                              summary alone: results.md and *.svg, which replace those of the
                              folder. Prints the targets, and which are met. FOUND.json may be a
                              summary, too: its report is made again.
"""

import sys
from pathlib import Path

import cost_model
import plots
from cited import CITED
from figures import Figures, read, summary, text_of, union

TITLES = {
    "operations": "set, get and add",
    "large_values": "set and get of large values",
    "round_trips": "Round trips of one client",
    "callers": "Threads that share a store",
    "multi_get": "64 keys at once",
    "wake_ups": "The last wake-up of many waiters",
    "connect_storm": "Many connections at the same moment",
    "start": "To connect and join",
    "join": "To join",
    "barrier": "Barrier",
    "broadcast": "Broadcast",
    "all_gather": "all_gather",
    "heartbeats": "Heartbeats of all ranks",
    "stateless_groups": "vLLM's algorithm on TCPStore, and Muster",
    "memory": "Memory",
    "expiry": "Expiry",
    "fairness": "A few small requests beside many, and beside large values",
}
LOAD_MAX = 0.5  # the load average of an idle machine when the run begins
# Columns with minimum and median; all others have the median alone.
LEAST_AND_MEDIAN = {"server_us", "client_us", "wall_ms", "server_ms", "server_us_per_rank",
                    "last_us", "but_host_ms"}


def number(value):
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(heads, lines):
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def cell(row, name):
    if name not in row.names():
        return "–"
    if name in LEAST_AND_MEDIAN:
        return f"{number(row.minimum(name))} / {number(row.median(name))}"
    return number(row.median(name))


def table_of_question(figures, question):
    rows = figures.of(question)
    parameters = union(row.parameters for row in rows)
    values = union(row.names() for row in rows)
    heads = parameters + ["server"] + [
        name + (" (min / median)" if name in LEAST_AND_MEDIAN else "") for name in values]
    lines = []
    for row in rows:
        given = [row.parameters.get(name, "") for name in parameters]
        lines.append([number(value) if isinstance(value, (int, float)) else value
                      for value in given]
                     + [row.subject] + [cell(row, name) for name in values])
    return table(heads, lines)


def markdown(figures, drawn):
    machine = figures.machine
    yield "# Results"
    yield ""
    yield ("Made by `tools/dev bench` (" + figures.extent + "), " + machine["date"]
           + ". [README.md](README.md) says how, and what each figure means.")
    yield ""
    minutes = sum(figures.seconds.values()) / 60
    yield from table(["machine", ""], [[name.replace("_", " "), str(value)]
                                       for name, value in machine.items() if name != "date"]
                     + [["the run took", f"{minutes:.1f} min"]])
    if float(machine["load_at_start"]) > LOAD_MAX:
        yield ""
        yield ("**Something else was at work when this began, or had just been.** If it went on, "
               "times are longer than they should be.")
    yield ""
    yield from table(["server", "version"], figures.programs.items())
    yield ""
    if figures.verdicts():
        yield "## Targets"
        yield ""
        yield from table(["what", "target", "measured", "met"],
                         [[one.what, one.target, one.measured, "yes" if one.is_met else "**no**"]
                          for one in figures.verdicts()])
    compared = list(against_peers(figures))
    if compared:
        yield ""
        yield "## Against the peers"
        yield ""
        yield ("Processor time of the server per operation, for waiters and storms the time that "
               "passes, bytes, lateness: the least of the rounds against that of the best peer.")
        yield ""
        yield from table(["question", "cases", "Muster takes least", "at most a tenth more",
                          "more"], compared)
    for question in figures.questions():
        yield ""
        yield f"## {TITLES.get(question, question)}"
        yield ""
        for plot in drawn.get(question, []):
            yield f"![{TITLES.get(question, question)}]({plot})"
            yield ""
        yield from table_of_question(figures, question)
    of_scale = list(cost_model.markdown(figures, drawn.get(cost_model.TITLE, [])))
    if of_scale:
        yield ""
        yield f"## {cost_model.TITLE}"
        yield ""
        yield from of_scale
    yield ""
    yield "## Cited"
    yield ""
    yield "Not measured here; of other versions, or at sizes that this machine does not have."
    yield ""
    yield from table(["what", "figure", "source"], CITED)
    if figures.not_measured:
        yield ""
        yield "## Not measured"
        yield ""
        yield from table(["question", "why"],
                         [[one["question"], one["why"]] for one in figures.not_measured])


# The column of each question in which servers are compared; less is better.
COMPARED = {"operations": "server_us", "large_values": "server_us", "multi_get": "server_us",
            "wake_ups": "last_us", "connect_storm": "wall_ms",
            "memory": ("bytes_per_key", "bytes_per_connection"), "expiry": "late_p99_ms"}


def compared_value(row):
    names = COMPARED.get(row.question, ())
    for name in (names,) if isinstance(names, str) else names:
        if name in row.names():
            return name
    return None


# What is this much above the best peer is within what this machine's rounds differ by.
NEAR = 1.1


def best_peer(figures, ours, name):
    """Of the same question and case; None where no peer took part."""
    peers = [row for row in figures.rows
             if row.question == ours.question and row.parameters == ours.parameters
             and row.subject not in ("muster", "echo") and name in row.names()]
    return min(peers, key=lambda row: row.minimum(name), default=None)


def against_peers(figures):
    """Of each question: in how many cases Muster is ahead of every peer, or near, and where not."""
    for question in COMPARED:
        ahead, near, behind = 0, 0, []
        for ours in figures.of(question, "muster"):
            name = compared_value(ours)
            best = best_peer(figures, ours, name) if name else None
            if best is None:
                continue
            least = best.minimum(name)
            if ours.minimum(name) <= least:
                ahead += 1
            elif ours.minimum(name) <= NEAR * least:
                near += 1
            else:
                behind.append(f"{case_of(ours)}: {number(ours.minimum(name))}, "
                              f"{best.subject} {number(least)}")
        if ahead or near or behind:
            yield [TITLES[question], str(ahead + near + len(behind)), str(ahead), str(near),
                   "; ".join(behind) or "–"]


def case_of(row):
    return " ".join(number(value) if isinstance(value, (int, float)) else str(value)
                    for value in row.parameters.values() if value is not None)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    of_summary = summary(read(sys.argv[1]))
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    figures = Figures(of_summary)
    for old in folder.glob("*.svg"):
        old.unlink()
    drawn = plots.draw(figures, folder)
    (folder / "results.md").write_text("\n".join(markdown(figures, drawn)) + "\n",
                                       encoding="utf-8")
    (folder / "results.json").write_text(text_of(of_summary), encoding="utf-8")
    for one in figures.verdicts():
        print(f"{'met ' if one.is_met else 'MISSED'}  {one.what}: {one.measured}, "
              f"target {one.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
