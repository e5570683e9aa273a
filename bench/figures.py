"""What a run of muster_bench has found: its rows, and what they say of a value over the rounds."""

import json
import statistics
from pathlib import Path


class Row:
    """One question with its parameters, asked of one subject in so many rounds."""

    def __init__(self, raw):
        self.question = raw["question"]
        self.parameters = raw["parameters"]
        self.subject = raw["subject"]
        self.rounds = raw["rounds"]

    def values(self, name):
        return [one[name] for one in self.rounds if name in one]

    def names(self):
        return list(self.rounds[0])

    def minimum(self, name):
        return min(self.values(name))

    def maximum(self, name):
        return max(self.values(name))

    def median(self, name):
        return statistics.median(self.values(name))


class ShortRow(Row):
    """As in the report's results.json: what the rounds come to."""

    def __init__(self, raw):
        super().__init__(raw)
        self.summaries = raw["values"]

    def names(self):
        return list(self.summaries)

    def minimum(self, name):
        return self.summaries[name]["min"]

    def median(self, name):
        return self.summaries[name]["median"]


class Figures:
    def __init__(self, path):
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
        self.machine = raw["machine"]
        self.programs = raw["programs"]
        self.extent = raw["extent"]
        self.seconds = raw["seconds"] or {}
        self.not_measured = raw["not_measured"]
        self.rows = [ShortRow(row) if "values" in row else Row(row) for row in raw["rows"]]

    def questions(self):
        return list(dict.fromkeys(row.question for row in self.rows))

    def subjects(self):
        return list(dict.fromkeys(row.subject for row in self.rows))

    def of(self, question, subject=None, **parameters):
        """The rows of a question that have these parameters."""
        return [row for row in self.rows
                if row.question == question and subject in (None, row.subject)
                and all(row.parameters.get(name) == value for name, value in parameters.items())]

    def one(self, question, subject="muster", **parameters):
        """The row, or None where it was not measured."""
        rows = self.of(question, subject, **parameters)
        return rows[0] if rows else None
