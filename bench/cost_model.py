"""What the server's processor time is made of: a cost for each connection, join, arrival, release,
confirmation and byte, fitted to what was measured, and where that leads with more ranks.

cost_model.py RESULTS.json   prints it; of docs/benchmarks/results.json, or of what muster_bench
                             has written

The fit minimizes the squares of the relative errors, with no cost below zero. Points with few ranks
are left out: there, waking the server is most of it.
"""

import itertools
import sys
from dataclasses import dataclass

from cited import CITED_STARTS
from figures import read

TITLE = "Where it ends"
COSTS = {
    "connection": "accept, hello, a new session",
    "join": "a join and its answer",
    "arrival": "a rank's request that waits for the others",
    "release": "its answer, when all have come; so of a waiting get",
    "confirmation": "of a barrier: the frame that confirms it",
    "heartbeat": "of a session, and its answer",
    "byte": "of values, on its way out",
}
HEARTBEAT_US = 1e6  # between two of a session, by default
SHORTEST = 64  # ranks of a point that counts
BEYOND = (16_384, 32_768, 100_000)  # ranks that nobody measured
QUESTIONS = ("connect_storm", "start", "join", "barrier", "broadcast", "all_gather", "wake_ups",
             "heartbeats")


@dataclass
class Point:
    question: str
    ranks: int
    value_bytes: int
    work: dict  # how many of each cost
    measured_us: float

    def name(self):
        size = f" of {self.value_bytes:,} B" if self.value_bytes else ""
        return self.question.replace("_", " ") + size


def work_of(question, ranks, value_bytes=0):
    """How many of each cost a question asks for; None: it is not part of the model."""
    values = {"broadcast": ranks - 1, "all_gather": ranks * ranks}.get(question, 0)
    return {
        "connect_storm": {"connection": ranks},
        "start": {"connection": ranks, "join": ranks},
        "join": {"join": ranks},
        "barrier": {"arrival": ranks, "release": ranks, "confirmation": ranks},
        "broadcast": {"arrival": ranks, "release": ranks, "byte": values * value_bytes},
        "all_gather": {"arrival": ranks, "release": ranks, "byte": values * value_bytes},
        "wake_ups": {"arrival": 1, "release": ranks},
        "heartbeats": {"heartbeat": ranks},
    }.get(question)


def points(figures, cores):
    for question in QUESTIONS:
        for row in figures.of(question, "muster", cores=cores):
            given = row.parameters
            ranks = given.get("ranks") or given.get("waiters") or given.get("connections")
            value_bytes = given.get("value_bytes", 0)
            per_rank = question in ("connect_storm", "wake_ups")
            measured_us = (row.minimum("server_us") * ranks if per_rank
                           else row.minimum("server_ms") * 1e3)
            yield Point(question, ranks, value_bytes, work_of(question, ranks, value_bytes),
                        measured_us)


def solve(matrix, right):
    """Gauss, with pivots; None where there is no single solution."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < 1e-12:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def least_squares(table, wanted):
    """The x with table · x nearest to wanted; None where there is more than one."""
    scales = [max(abs(row[i]) for row in table) for i in range(len(table[0]))]
    if 0 in scales:
        return None
    scaled = [[value / scale for value, scale in zip(row, scales)] for row in table]
    columns = list(zip(*scaled))
    normal = [[sum(a * b for a, b in zip(one, other)) for other in columns] for one in columns]
    right = [sum(a * b for a, b in zip(one, wanted)) for one in columns]
    solution = solve(normal, right)
    return solution and [value / scale for value, scale in zip(solution, scales)]


def fit(of_points):
    """Microseconds by cost. Which costs are zero is tried out: there are but a few."""
    used = [cost for cost in COSTS if any(point.work.get(cost) for point in of_points)]
    best, least = {}, float("inf")
    for count in range(1, len(used) + 1):
        for chosen in itertools.combinations(used, count):
            table = [[point.work.get(cost, 0) / point.measured_us for cost in chosen]
                     for point in of_points]
            solution = least_squares(table, [1] * len(of_points))
            if solution is None or min(solution) < 0:
                continue
            error = sum((sum(a * x for a, x in zip(row, solution)) - 1) ** 2 for row in table)
            if error < least * (1 - 1e-9):
                best, least = dict(zip(chosen, solution)), error
    return {cost: best.get(cost, 0.0) for cost in COSTS}


def predict_us(costs, work):
    return sum(costs[cost] * count for cost, count in work.items())


class Model:
    """Of one placement of client and server."""

    CALLS = {"start": ("start", 0), "barrier": ("barrier", 0),
             "all_gather of 64 B": ("all_gather", 64), "all_gather of 4 KiB": ("all_gather", 4096)}

    def __init__(self, figures, cores):
        self.points = list(points(figures, cores))
        self.fitted = [point for point in self.points if point.ranks >= SHORTEST]
        self.is_whole = {point.question for point in self.fitted} == set(QUESTIONS)
        self.costs = fit(self.fitted) if self.is_whole else {}

    def predict_us(self, question, ranks, value_bytes=0):
        """By the costs, times what the largest measured point took more than they say."""
        told_us = predict_us(self.costs, work_of(question, ranks, value_bytes))
        largest = max((point for point in self.fitted
                       if (point.question, point.value_bytes) == (question, value_bytes)),
                      key=lambda point: point.ranks, default=None)
        if largest is None or ranks < largest.ranks:
            return told_us
        return told_us * largest.measured_us / predict_us(self.costs, largest.work)

    def measured_us(self, question, ranks, value_bytes=0):
        """None where it was not measured."""
        wanted = (question, ranks, value_bytes)
        return next((point.measured_us for point in self.points
                     if (point.question, point.ranks, point.value_bytes) == wanted), None)

    def ranks(self):
        """That were measured, and beyond."""
        measured = {point.ranks for point in self.points if point.question == "barrier"}
        return sorted(measured), [ranks for ranks in BEYOND if ranks > max(measured)]


def bytes_in_words(count):
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.0f} PB"


def time_in_words(microseconds):
    if microseconds < 1e6:
        return f"{microseconds / 1e3:.3g} ms"
    return f"{microseconds / 1e6:,.3g} s" if microseconds < 1e9 else f"{microseconds / 1e6:,.0f} s"


def costs_table(models):
    yield "| each | is | " + " | ".join(models) + " |"
    yield "|---|---|" + "---:|" * len(models)
    for cost, meaning in COSTS.items():
        cells = [f"{model.costs[cost] * 1e3:.3g} ns" if cost == "byte"
                 else f"{model.costs[cost]:.3g} µs" for model in models.values()]
        yield f"| {cost} | {meaning} | " + " | ".join(cells) + " |"


def points_table(model):
    yield "| question | ranks | measured | by the costs | of measured |"
    yield "|---|---:|---:|---:|---:|"
    for point in model.points:
        told_us = predict_us(model.costs, point.work)
        mark = "" if point.ranks >= SHORTEST else " (not fitted)"
        yield (f"| {point.name()} | {point.ranks:,}{mark} | {time_in_words(point.measured_us)} "
               f"| {time_in_words(told_us)} | {100 * told_us / point.measured_us:.0f} % |")


def line_table(model, memory_per_rank):
    """Server time by ranks; what was measured, and in italics what only the costs say."""
    heads = ["ranks", *model.CALLS, "bytes of 64 B", "of 4 KiB", "heartbeats, of a core",
             "memory of the ranks"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---:|" * len(heads)
    measured, beyond = model.ranks()
    for ranks in measured + beyond:
        cells = [f"{ranks:,}" if ranks in measured else f"*{ranks:,}*"]
        for question, size in model.CALLS.values():
            seen_us = model.measured_us(question, ranks, size)
            told = time_in_words(seen_us or model.predict_us(question, ranks, size))
            cells.append(told if seen_us else f"*{told}*")
        cells += [f"*{bytes_in_words(ranks * ranks * size)}*" for size in (64, 4096)]
        beats_us = (model.measured_us("heartbeats", ranks)
                    or model.predict_us("heartbeats", ranks))
        cells.append(f"*{100 * beats_us / HEARTBEAT_US:.2g} %*")
        cells.append(f"*{bytes_in_words(ranks * memory_per_rank)}*" if memory_per_rank else "–")
        yield "| " + " | ".join(cells) + " |"


def cited_table(model):
    yield "| who (cited) | ranks | their whole start | here: connect, join, a barrier |"
    yield "|---|---:|---:|---:|"
    for who, ranks, took, _ in CITED_STARTS:
        told_us = model.predict_us("start", ranks) + model.predict_us("barrier", ranks)
        yield f"| {who} | {ranks:,} | {took} | *{time_in_words(told_us)}* |"


def markdown(figures, plots=()):
    """The part of the report; nothing where too little was measured."""
    models = {cores: Model(figures, cores) for cores in ("1cpu", "2cpu")}
    if not all(model.is_whole for model in models.values()):
        return
    model = models["2cpu"]
    waiting = figures.one("memory", of="ranks that wait in a barrier")
    memory_per_rank = waiting and waiting.minimum("bytes_per_connection")
    yield ("Processor time of the server, as the sum of what each thing costs: fitted to the "
           f"measured points with {SHORTEST} ranks or more, as [scale.md](scale.md) says.")
    yield ""
    yield from costs_table(models)
    yield ""
    for plot in plots:
        yield f"![{TITLE}]({plot})"
        yield ""
    yield ("With one core each (2cpu). *In italics: what was not measured, but follows from the "
           "costs, raised by as much as the largest measured point of the question is above "
           "them, and the bytes that an all_gather sends.*")
    yield ""
    yield from line_table(model, memory_per_rank)
    yield ""
    yield ("Published records are of other machines and networks, and of more than the store's "
           "work; here it is the server's processor time alone, below which no start can be.")
    yield ""
    yield from cited_table(model)
    yield ""
    yield "How well the costs tell what was measured:"
    yield ""
    yield from points_table(model)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    text = "\n".join(markdown(read(sys.argv[1])))
    print(text or "too little was measured")
    return 0 if text else 1


if __name__ == "__main__":
    sys.exit(main())
