"""What a run of muster_bench has found: its rows, and what they say of a value over the rounds.

Two forms of file are read: muster_bench's own, with every round, and the summary that the report
keeps, with minimum and median of each value. The summary has a line for each case of a question:

    [[PARAMETER, ...], {SUBJECT: [ROUNDS, VALUE, ...], ...}]

Parameters and values are in the order in which the question lists their names; null stands for one
that there is not. A value is [minimum, median], or a number where both are the same.
"""

import json
import math
import statistics
from pathlib import Path

from targets import Verdict, verdicts

DIGITS = 7  # of a value in the summary; a report prints three, or a whole number
HIDDEN = {"operations"}  # that were measured, which differ in each round


class Row:
    """One question with its parameters, asked of one subject in so many rounds."""

    def __init__(self, raw):
        self.question = raw["question"]
        self.parameters = raw["parameters"]
        self.subject = raw["subject"]
        self.rounds = raw["rounds"]
        self.rounds_count = len(self.rounds)

    def values(self, name):
        return [one[name] for one in self.rounds if name in one]

    def names(self):
        return [name for name in self.rounds[0] if name not in HIDDEN]

    def minimum(self, name):
        return min(self.values(name))

    def maximum(self, name):
        return max(self.values(name))

    def median(self, name):
        return statistics.median(self.values(name))


class ShortRow:
    """As in a summary: what the rounds come to."""

    def __init__(self, question, parameters, subject, rounds_count, values):
        self.question = question
        self.parameters = parameters
        self.subject = subject
        self.rounds_count = rounds_count
        self.summaries = values

    def names(self):
        return list(self.summaries)

    def minimum(self, name):
        return self.summaries[name][0]

    def median(self, name):
        return self.summaries[name][1]


class Figures:
    def __init__(self, raw):
        self.page = raw.get("page")  # of a report that is one of several pages of the same form
        self.machine = raw["machine"]
        self.programs = raw["programs"]
        self.extent = raw["extent"]
        self.seconds = raw["seconds"] or {}
        self.not_measured = raw["not_measured"]
        if "questions" in raw:
            self.rows = list(short_rows(raw["questions"]))
            self.judged = [Verdict(*one) for one in raw["targets"]]
        else:
            self.rows = [Row(row) for row in raw["rows"]]
            self.judged = None

    def verdicts(self):
        """Judged by all rounds, so by what was measured; a summary has what was judged then."""
        return list(verdicts(self)) if self.judged is None else self.judged

    def questions(self):
        return list(dict.fromkeys(row.question for row in self.rows))

    def of(self, question, subject=None, **parameters):
        """The rows of a question that have these parameters."""
        return [row for row in self.rows
                if row.question == question and subject in (None, row.subject)
                and all(row.parameters.get(name) == value for name, value in parameters.items())]

    def one(self, question, subject="muster", **parameters):
        """The row, or None where it was not measured."""
        rows = self.of(question, subject, **parameters)
        return rows[0] if rows else None


def read(path):
    return Figures(json.loads(Path(path).read_text(encoding="utf-8")))


def union(lists):
    return list(dict.fromkeys(name for names in lists for name in names))


def short_rows(questions):
    for question, asked in questions.items():
        for given, of_subjects in asked["cases"]:
            parameters = {name: value for name, value in zip(asked["parameters"], given)
                          if value is not None}
            for subject, (rounds_count, *cells) in of_subjects.items():
                values = {name: cell if isinstance(cell, list) else [cell, cell]
                          for name, cell in zip(asked["values"], cells) if cell is not None}
                yield ShortRow(question, parameters, subject, rounds_count, values)


def rounded(value):
    """With DIGITS digits; a whole number as such."""
    if value:
        value = round(value, max(0, DIGITS - 1 - math.floor(math.log10(abs(value)))))
    return int(value) if float(value).is_integer() else value


def summary_of_question(rows):
    parameters = union(row.parameters for row in rows)
    values = union(row.names() for row in rows)

    def cell(row, name):
        if name not in row.names():
            return None
        least, median = rounded(row.minimum(name)), rounded(row.median(name))
        return least if least == median else [least, median]

    cases = {}
    for row in rows:
        given = tuple(row.parameters.get(name) for name in parameters)
        cases.setdefault(given, {})[row.subject] = [
            row.rounds_count, *(cell(row, name) for name in values)]
    return {"parameters": parameters, "values": values,
            "cases": [[list(given), of_subjects] for given, of_subjects in cases.items()]}


def summary(figures):
    """What a report is made of, as the file holds it."""
    page = {"page": figures.page} if figures.page else {}
    return {**page, "machine": figures.machine, "programs": figures.programs,
            "extent": figures.extent,
            "seconds": {name: round(value, 1) for name, value in figures.seconds.items()},
            "not_measured": figures.not_measured,
            "targets": [[one.what, one.target, one.measured, one.is_met]
                        for one in figures.verdicts()],
            "questions": {question: summary_of_question(figures.of(question))
                          for question in figures.questions()}}


def text_of(of_summary):
    """JSON with a line for each target and each case."""
    def line(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def block(values):
        return "[\n" + ",\n".join(line(value) for value in values) + "\n]"

    members = [f'"{name}":{line(of_summary[name])}'
               for name in ("page", "machine", "programs", "extent",
                            "seconds", "not_measured") if name in of_summary]
    members.append(f'"targets":{block(of_summary["targets"])}')
    questions = [f'{line(question)}:{{\n"parameters":{line(asked["parameters"])},\n'
                 f'"values":{line(asked["values"])},\n"cases":{block(asked["cases"])}\n}}'
                 for question, asked in of_summary["questions"].items()]
    members.append('"questions":{\n' + ",\n".join(questions) + "\n}")
    return "{\n" + ",\n".join(members) + "\n}\n"
