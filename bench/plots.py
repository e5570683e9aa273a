"""Draws what is better seen than read. Needs matplotlib."""

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "muster"  # the same figures, the same file
from matplotlib import pyplot

import cost_model
from cited import CITED_STARTS

SIZE_INCHES = (7, 4)
COLORS = {"echo": "0.6", "muster": "C3", "redis": "C0", "memcached": "C2", "tcpstore": "C1"}


def lines(figures, folder, name, question, along, value, title, unit, **parameters):
    """A line for each server, along one parameter, of the least of a value."""
    series = {}
    for row in figures.of(question, **parameters):
        series.setdefault(row.subject, []).append((row.parameters[along], row.minimum(value)))
    if not any(len(points) > 1 for points in series.values()):
        return None
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES)
    for subject, points in series.items():
        points.sort()
        axes.plot([x for x, _ in points], [y for _, y in points], marker="o", label=subject,
                  color=COLORS.get(subject))
    axes.set(title=title, xlabel=along, ylabel=unit, xscale="log", yscale="log")
    at = sorted({x for points in series.values() for x, _ in points})
    axes.set_xticks(at, [f"{x:,}" for x in at])
    axes.set_xticks([], minor=True)
    return finish(figure, axes, folder, name)


def bars(figures, folder, name, title, unit, value, rows_of):
    """A group of bars for each label, a bar for each server."""
    labels = list(rows_of)
    subjects = list(dict.fromkeys(row.subject for rows in rows_of.values() for row in rows))
    if not subjects:
        return None
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES)
    width = 0.8 / len(subjects)
    for index, subject in enumerate(subjects):
        for place, label in enumerate(labels):
            of_subject = [row for row in rows_of[label] if row.subject == subject]
            if of_subject:
                axes.bar(place + (index - (len(subjects) - 1) / 2) * width,
                         of_subject[0].minimum(value), width, color=COLORS.get(subject),
                         label=subject if place == 0 else None)
    axes.set(title=title, ylabel=unit)
    axes.set_xticks(range(len(labels)), labels)
    return finish(figure, axes, folder, name)


def scale(model, folder, name):
    """Processor time by ranks: measured, and as the costs tell it, dashed where nobody measured."""
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES)
    measured, beyond = model.ranks()
    for color, (label, (question, size)) in zip(("C0", "C3", "C2", "C1"), model.CALLS.items()):
        def told(ranks, question=question, size=size):
            return [model.predict_us(question, one, size) / 1e6 for one in ranks]
        seen = {ranks: model.measured_us(question, ranks, size) for ranks in measured}
        seen = {ranks: seen_us / 1e6 for ranks, seen_us in seen.items() if seen_us}
        further = [max(seen, default=measured[0]),
                   *(ranks for ranks in measured + beyond if ranks > max(seen, default=0))]
        axes.plot(list(seen), told(seen), color=color, label=label)
        axes.plot(further, told(further), color=color, linestyle="--")
        axes.plot(list(seen), list(seen.values()), "o", color=color)
    axes.plot([ranks for _, ranks, _, _ in CITED_STARTS],
              [seconds for _, _, _, seconds in CITED_STARTS], "x", color="0.4",
              label="whole starts\nof others (cited)")
    axes.set(title="Processor time of the server; dashed: not measured", xlabel="ranks",
             ylabel="s", xscale="log", yscale="log")
    return finish(figure, axes, folder, name)


def finish(figure, axes, folder, name):
    axes.grid(True, alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(folder / name, metadata={"Date": None})
    pyplot.close(figure)
    return name


def draw(figures, folder):
    """The plots of each question, by their files' names."""
    asked = {"connections": 64, "cores": "1cpu"}
    drawn = {}
    for depth in (1, 16):
        rows_of = {}
        for operation in ("set", "get", "add"):
            size = {} if operation == "add" else {"value_bytes": 64}
            rows_of[operation] = figures.of("operations", operation=operation, depth=depth,
                                            **asked, **size)
        drawn.setdefault("operations", []).append(
            bars(figures, folder, f"operations_{depth}.svg",
                 f"64 connections, one core, pipelined {depth}", "server CPU per operation, µs",
                 "server_us", rows_of))
    drawn["wake_ups"] = [lines(figures, folder, "wake_ups.svg", "wake_ups", "waiters", "last_us",
                               "The last wake-up", "µs", cores="2cpu")]
    drawn["connect_storm"] = [
        lines(figures, folder, "connect_storm.svg", "connect_storm", "connections", "wall_ms",
              "Until the last of so many connections is served", "ms", cores="2cpu")]
    for question in ("start", "barrier"):
        drawn[question] = [lines(figures, folder, f"{question}.svg", question, "ranks", "wall_ms",
                                 question, "ms", cores="2cpu")]
    for question, size in (("broadcast", 1024), ("all_gather", 64)):
        drawn[question] = [lines(figures, folder, f"{question}.svg", question, "ranks", "wall_ms",
                                 f"{question} of {size:,} B", "ms", cores="2cpu",
                                 value_bytes=size)]
    drawn["stateless_groups"] = [
        lines(figures, folder, f"stateless_{call}.svg", "stateless_groups", "ranks", "wall_ms",
              f"{call}: vLLM's algorithm on TCPStore, and Muster", "ms", call=call)
        for call in ("barrier", "all_gather")]
    model = cost_model.Model(figures, "2cpu")
    drawn[cost_model.TITLE] = [scale(model, folder, "scale.svg") if model.is_whole else None]
    return {question: [name for name in names if name] for question, names in drawn.items()}
