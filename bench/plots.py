"""Draws what is better seen than read."""

import cost_model
import svg
from cited import CITED_STARTS

GREY = "#999"
COLORS = {"echo": GREY, "muster": "#d62728", "redis": "#1f77b4", "memcached": "#2ca02c",
          "tcpstore": "#ff7f0e"}
CALL_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e")


def labels(axis, values=None):
    """The text of each tick, by its place."""
    return {axis.place(value): svg.number(value) for value in values or axis.ticks()}


def lines(figures, folder, name, question, along, value, title, unit, **parameters):
    """A line for each server, along one parameter, of the least of a value."""
    series = {}
    for row in figures.of(question, **parameters):
        series.setdefault(row.subject, []).append((row.parameters[along], row.minimum(value)))
    if not any(len(points) > 1 for points in series.values()):
        return None
    x_values = sorted({x for points in series.values() for x, _ in points})
    x_axis = svg.x_axis(x_values)
    y_axis = svg.y_axis([y for points in series.values() for _, y in points])
    chart = svg.Chart(title, along, unit)
    chart.grid(labels(x_axis, x_values), labels(y_axis))
    for subject, points in series.items():
        placed = [(x_axis.place(x), y_axis.place(y)) for x, y in sorted(points)]
        chart.line(placed, COLORS[subject])
        chart.dots(placed, COLORS[subject])
        chart.legend(subject, COLORS[subject])
    return write(chart, folder, name)


def bars(figures, folder, name, title, unit, value, rows_of):
    """A group of bars for each label, a bar for each server."""
    subjects = list(dict.fromkeys(row.subject for rows in rows_of.values() for row in rows))
    if not subjects:
        return None
    y_axis = svg.y_axis([row.minimum(value) for rows in rows_of.values() for row in rows],
                        svg.Linear)
    of_label = (svg.RIGHT - svg.LEFT) / len(rows_of)
    width = round(0.8 * of_label / len(subjects), 1)
    chart = svg.Chart(title, "", unit)
    middles = {label: round(svg.LEFT + (index + 0.5) * of_label, 1)
               for index, label in enumerate(rows_of)}
    chart.grid({x: label for label, x in middles.items()}, labels(y_axis))
    for index, subject in enumerate(subjects):
        boxes = [(round(middles[label] + (index - len(subjects) / 2) * width, 1),
                  y_axis.place(row.minimum(value)), width)
                 for label, rows in rows_of.items() for row in rows if row.subject == subject]
        chart.bars(boxes, COLORS[subject])
        chart.legend(subject, COLORS[subject])
    return write(chart, folder, name)


def scale(model, folder, name):
    """Processor time by ranks: measured, and as the costs tell it, dashed where nobody measured."""
    measured, beyond = model.ranks()
    cited = [(ranks, seconds) for _, ranks, _, seconds in CITED_STARTS]
    curves = []
    for label, (question, size) in model.CALLS.items():
        seen = {ranks: seen_us / 1e6 for ranks in measured
                if (seen_us := model.measured_us(question, ranks, size))}
        last = max(seen, default=measured[0])
        further = [last, *(ranks for ranks in measured + beyond if ranks > last)]
        told = {ranks: model.predict_us(question, ranks, size) / 1e6
                for ranks in [*seen, *further]}
        curves.append((label, seen, further, told))
    x_axis = svg.x_axis(measured + beyond)
    y_axis = svg.y_axis([y for _, seen, _, told in curves
                         for y in [*seen.values(), *told.values()]] + [y for _, y in cited])

    def placed(points):
        return [(x_axis.place(x), y_axis.place(y)) for x, y in points]

    chart = svg.Chart("Processor time of the server; dashed: not measured", "ranks", "s")
    chart.grid(labels(x_axis), labels(y_axis))
    for color, (label, seen, further, told) in zip(CALL_COLORS, curves):
        chart.line(placed((ranks, told[ranks]) for ranks in seen), color)
        chart.line(placed((ranks, told[ranks]) for ranks in further), color, dashes="5 3")
        chart.dots(placed(seen.items()), color)
        chart.legend(label, color)
    chart.crosses(placed(cited), GREY)
    chart.legend("starts of others (×)", GREY)
    return write(chart, folder, name)


def write(chart, folder, name):
    (folder / name).write_text(chart.text(), encoding="utf-8")
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
