"""The results of verbs, as tables."""

import json
from pathlib import Path

from plan import BANDWIDTH_BYTES, CHECKS, OPERATIONS, PARTS, SUBJECTS

BEGIN, END = "<!-- gpu: begin -->\n", "<!-- gpu: end -->\n"
OUTCOMES = {"holds": "holds", "fails": "**does not hold**", "not_run": "not run"}
# Of all ranks together, as NCCL's own benchmarks count: what each moves, by what is in the buffer.
BUS_FACTOR = {"all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
              "broadcast": lambda ranks: 1, "send_recv": lambda ranks: 1}


def number(value):
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{round(count, 1):g} {unit}"
        count /= 1024
    return f"{count:g} TiB"


def figures(row):
    return "; ".join(f"{name}: {number(value)} {unit}".strip()
                     for name, (value, unit) in row["figures"].items())


def outcome(row):
    text = OUTCOMES[row["outcome"]]
    if row["is_short"]:
        text += ", as far as there was time"
    if row["why"]:
        text += f": {row['why']}"
    told = figures(row)
    return (f"{text}; {told}" if told else text).replace("|", "/")


def not_yet(verb):
    return f"not run yet: `tools/dev gpu {verb}`"


class Results:
    """What verbs have left in folders; where several have the same, the last of these counts."""

    def __init__(self, folders):
        self.of = {}
        for folder in folders:
            for path in sorted(Path(folder).glob("*.json")):
                self.of[path.stem] = json.loads(path.read_text(encoding="utf-8"))

    def row(self, stem, key):
        rows = self.of.get(stem, {}).get("rows", [])
        return next((row for row in rows if row["key"] == key), None)

    def runs(self):
        """Where, and of which commit, results come from; each once."""
        for result in self.of.values():
            machine = result["machine"]
            names = machine["devices"]
            kinds = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
            yield (f"{kinds}; driver for CUDA {machine['cuda'] // 1000}."
                   f"{machine['cuda'] % 1000 // 10}, NCCL {machine['nccl']}; commit "
                   f"{result['state']}{'; in small' if result['is_small'] else ''}")


def checks(results):
    yield "| check | what must hold | ranks and mode | outcome |"
    yield "|---|---|---|---|"
    for number_of, what in CHECKS.items():
        yield f"| **{number_of}** | **{what}** | | |"
        for part in (part for part in PARTS if part.check == number_of):
            row = results.row(stem_of_check(number_of), part.key)
            told = outcome(row) if row else not_yet(f"check {number_of}")
            yield f"| {number_of} | {part.must} | {part.how} | {told} |"


def speeds(row, count, ranks, operation):
    """A cell for each subject: GB/s over the bus, and of Muster's how much of NCCL's."""
    factor = BUS_FACTOR[operation](ranks)
    base = None
    for subject in SUBJECTS:
        us = row["figures"].get(f"{count} {subject}", [None])[0]
        if us is None:
            yield "–"
            continue
        speed = count / us / 1000 * factor
        base = base or us
        told = f"{number(us)} us, {speed:.3g} GB/s"
        yield told if subject == "nccl" else f"{told}, {base / us:.2f}"


def limits(row):
    """Why sizes are missing."""
    if row["why"]:
        yield row["why"]
    if row["is_short"]:
        yield "as far as there was time"
    room = row["figures"].get("room", [BANDWIDTH_BYTES[-1]])[0]
    if room < BANDWIDTH_BYTES[-1]:
        yield f"up to {size(room)}, what there was room for"


def bandwidth(results):
    for operation in OPERATIONS:
        result = results.of.get(f"bandwidth-{operation}")
        yield ""
        if result is None:
            yield f"**`{operation}`**: {not_yet(f'bandwidth {operation}')}"
            continue
        row, ranks = result["rows"][0], result["ranks"]
        yield (f"**`{operation}`**, {ranks} ranks on {len(result['machine']['devices'])} "
               f"GPU{''.join(f'; {why}' for why in limits(row))}")
        yield ""
        yield "| size | NCCL alone, blocking | Muster, non-blocking | Muster, blocking |"
        yield "|---|---:|---:|---:|"
        for count in BANDWIDTH_BYTES:
            yield f"| {size(count)} | {' | '.join(speeds(row, count, ranks, operation))} |"


def programs(results):
    yield ""
    creation = results.of.get("creation")
    yield "**Creation** of overlapping groups: " + (
        "; ".join(creation["lines"]) if creation else not_yet("creation"))
    yield ""
    acceptance = results.of.get("acceptance")
    if acceptance is None:
        yield f"**The tests of `acceptance_test.cpp`**: {not_yet('acceptance')}"
        return
    yield "| `acceptance_test.cpp` | outcome | time |"
    yield "|---|---|---:|"
    for row in acceptance["rows"]:
        yield f"| {row['key']} | {outcome(row)} | {row.get('seconds', 0):.0f} s |"


def table(results):
    runs = list(dict.fromkeys(results.runs()))
    yield "; ".join(runs) + "." if runs else "Nothing of this was run on a GPU yet."
    yield ""
    yield from checks(results)
    yield ("\nBandwidth: medians of the time of one call; GB/s over the bus, as NCCL's own "
           "benchmarks count; of Muster's also the part of NCCL's speed.")
    yield from bandwidth(results)
    yield from programs(results)


def stem_of_check(check):
    return f"check-{check:02}"


def write(path, lines):
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    path.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1],
                    encoding="utf-8")
