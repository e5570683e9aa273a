"""Draws charts as small SVG files: the same numbers, the same file, a line of text for each thing
that is drawn."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 470, 40, 310  # of the part with the grid
LEGEND = RIGHT + 15
TICKS_MAX = 7


def number(value):
    """As in 12,000 or 0.05."""
    return f"{value:,.0f}" if value >= 1 and float(value).is_integer() else f"{value:g}"


class Axis:
    """Turns values into places between two pixels."""

    def __init__(self, low, high, begin, end):
        self.low, self.high = self.of(low), self.of(high)
        self.begin, self.end = begin, end

    def place(self, value):
        share = (self.of(value) - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def holds(self, value):
        return self.low <= self.of(value) <= self.high


class Linear(Axis):
    """From zero to a little above the largest value."""

    def __init__(self, values, begin, end):
        super().__init__(0, 1.05 * max(values), begin, end)

    @staticmethod
    def of(value):
        return value

    def ticks(self):
        step = next(step for step in steps(self.high / 1e3) if self.high / step <= TICKS_MAX)
        return [round(index * step, 9) for index in range(int(self.high / step) + 1)]


class Log(Axis):
    """From a little below the least value to a little above the largest."""

    def __init__(self, values, begin, end):
        super().__init__(min(values) / 1.25, max(values) * 1.25, begin, end)

    @staticmethod
    def of(value):
        return math.log10(value)

    def ticks(self):
        """Powers of ten; 2 and 5 of each where there are few."""
        fine = [step for step in steps(10 ** self.low) if self.holds(step)]
        tens = [step for step in fine if math.log10(step).is_integer()]
        return fine if len(fine) <= TICKS_MAX else tens


def steps(low):
    """1, 2 and 5 times each power of ten, from about `low` on, for 20 powers."""
    first = math.floor(math.log10(low))
    return [float(f"{digit}e{power}") for power in range(first, first + 20) for digit in (1, 2, 5)]


class Chart:
    """Text of a file: title, axes, and what is added. A line of the legend for each label."""

    def __init__(self, title, x_name, y_name):
        self.body = [f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
                     f'<text x="{(LEFT + RIGHT) // 2}" y="{HEIGHT - 12}" '
                     f'text-anchor="middle">{escape(x_name)}</text>',
                     f'<text transform="translate(16 {(TOP + BOTTOM) // 2}) rotate(-90)" '
                     f'text-anchor="middle">{escape(y_name)}</text>']
        self.labels = 0

    def grid(self, x_labels, y_labels):
        """Of each axis: the text by its place."""
        lines = "".join([f"M{x} {TOP}V{BOTTOM}" for x in x_labels]
                        + [f"M{LEFT} {y}H{RIGHT}" for y in y_labels])
        self.body.append(f'<path d="{lines}" stroke="#ddd" fill="none"/>')
        self.body.append(f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}V{TOP}Z" stroke="#000" '
                         'fill="none"/>')
        self.body += [f'<text x="{x}" y="{BOTTOM + 17}" text-anchor="middle">{escape(label)}</text>'
                      for x, label in x_labels.items()]
        self.body += [f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{escape(label)}</text>'
                      for y, label in y_labels.items()]

    def line(self, points, color, dashes=""):
        path = "L".join(f"{x} {y}" for x, y in points)
        style = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.body.append(f'<path d="M{path}" stroke="{color}" stroke-width="1.5" fill="none"'
                         f'{style}/>')

    def dots(self, points, color):
        path = "".join(f"M{x} {y}h0" for x, y in points)
        self.body.append(f'<path d="{path}" stroke="{color}" stroke-width="7" '
                         'stroke-linecap="round"/>')

    def crosses(self, points, color):
        path = "".join(f"M{x} {y}m-3-3l6 6m0-6l-6 6" for x, y in points)
        self.body.append(f'<path d="{path}" stroke="{color}" stroke-width="1.5" fill="none"/>')

    def bars(self, boxes, color):
        """Boxes of left, top, width; each stands on the axis."""
        path = "".join(f"M{x} {y}h{width}V{BOTTOM}h{-width}Z" for x, y, width in boxes)
        self.body.append(f'<path d="{path}" fill="{color}"/>')

    def legend(self, label, color):
        y = TOP + 10 + 20 * self.labels
        self.labels += 1
        self.body.append(f'<path d="M{LEGEND} {y}h18" stroke="{color}" stroke-width="5"/>'
                         f'<text x="{LEGEND + 24}" y="{y + 4}">{escape(label)}</text>')

    def text(self):
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                          f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
                          'font-size="12">',
                          '<rect width="100%" height="100%" fill="#fff"/>',
                          *self.body, "</svg>", ""])


def x_axis(values, scale=Log):
    return scale(values, LEFT, RIGHT)


def y_axis(values, scale=Log):
    return scale(values, BOTTOM, TOP)
