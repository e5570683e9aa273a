"""Test: the costs that are fitted to measured points, and what is said of ranks beyond."""

import unittest

import cost_model
from figures import Figures, summary

TRUE_US = {"connection": 20, "join": 10, "arrival": 4, "release": 5, "confirmation": 2,
           "heartbeat": 7, "byte": 0.0002}
RANKS = (8, 64, 256, 1024)
CALLS = (("start", 0), ("join", 0), ("barrier", 0), ("broadcast", 1024), ("broadcast", 1 << 20),
         ("all_gather", 64), ("heartbeats", 0))


def rows(change=lambda question, ranks, us: us):
    """As muster_bench writes them, of a server that costs exactly this; `change` disturbs it."""
    for cores in ("1cpu", "2cpu"):
        for ranks in RANKS:
            for question, size in CALLS:
                parameters = {"ranks": ranks, "cores": cores}
                if size:
                    parameters["value_bytes"] = size
                us = cost_model.predict_us(TRUE_US, cost_model.work_of(question, ranks, size))
                yield row(question, parameters, server_ms=change(question, ranks, us) / 1e3)
            for question, name in (("wake_ups", "waiters"), ("connect_storm", "connections")):
                us = cost_model.predict_us(TRUE_US, cost_model.work_of(question, ranks))
                yield row(question, {name: ranks, "cores": cores},
                          server_us=change(question, ranks, us) / ranks)
    yield row("memory", {"of": "ranks that wait in a barrier", "count": 4096},
              bytes_per_connection=2000)


def row(question, parameters, **values):
    worse = {name: 1.5 * value for name, value in values.items()}
    return {"question": question, "parameters": parameters, "subject": "muster",
            "rounds": [worse, values]}


def figures_of(of_rows):
    raw = {"machine": {}, "programs": {}, "extent": "quick", "seconds": {}, "not_measured": [],
           "rows": list(of_rows)}
    return Figures(raw)


class Fit(unittest.TestCase):
    def test_costs_that_tell_everything_are_found(self):
        costs = cost_model.Model(figures_of(rows()), "2cpu").costs
        for cost, us in TRUE_US.items():
            self.assertAlmostEqual(costs[cost] / us, 1, places=6, msg=cost)

    def test_the_report_has_what_the_fit_needs(self):
        whole = figures_of(rows())
        whole.judged = []  # there is not all in these rows that a target is judged by
        costs = cost_model.Model(whole, "1cpu").costs
        of_summary = cost_model.Model(Figures(summary(whole)), "1cpu").costs
        for cost, us in costs.items():
            self.assertAlmostEqual(of_summary[cost] / us, 1, places=5, msg=cost)

    def test_no_cost_is_below_zero_and_the_others_still_fit(self):
        # A barrier for less than a broadcast: its confirmation would have to give time back.
        def cheap_barrier(question, _ranks, us):
            return 0.8 * us if question == "barrier" else us
        model = cost_model.Model(figures_of(rows(cheap_barrier)), "2cpu")
        self.assertEqual(model.costs["confirmation"], 0)
        self.assertTrue(all(us >= 0 for us in model.costs.values()))
        self.assertAlmostEqual(model.costs["join"], TRUE_US["join"], places=6)

    def test_few_ranks_are_shown_and_not_fitted(self):
        def dear_for_few(_question, ranks, us):
            return 10 * us if ranks == 8 else us
        figures = figures_of(rows(dear_for_few))
        self.assertAlmostEqual(cost_model.Model(figures, "2cpu").costs["join"], TRUE_US["join"],
                               places=6)
        self.assertIn("| join | 8 (not fitted) |", "\n".join(cost_model.markdown(figures)))

    def test_small_points_count_as_much_as_large_ones(self):
        # Of two that contradict each other by the same share, none wins.
        of_points = [cost_model.Point("join", 64, 0, {"join": 64}, 64 * 9.0),
                     cost_model.Point("join", 10_240, 0, {"join": 10_240}, 10_240 * 11.0)]
        self.assertAlmostEqual(cost_model.fit(of_points)["join"], 9.9, delta=0.1)


class Beyond(unittest.TestCase):
    def test_what_the_largest_point_took_more_is_taken_to_last(self):
        def dear_for_many(question, ranks, us):
            return 2 * us if question == "heartbeats" and ranks == max(RANKS) else us
        model = cost_model.Model(figures_of(rows(dear_for_many)), "2cpu")
        told_us = model.predict_us("heartbeats", 100_000)
        self.assertAlmostEqual(told_us / (2 * 100_000 * TRUE_US["heartbeat"]), 1, places=6)
        self.assertLess(model.predict_us("heartbeats", 256), 1.5 * 256 * TRUE_US["heartbeat"])


class Report(unittest.TestCase):
    def test_what_was_not_measured_is_marked(self):
        lines = list(cost_model.markdown(figures_of(rows())))
        start_s = 100_000 * (TRUE_US["connection"] + TRUE_US["join"]) / 1e6
        beyond = [line for line in lines if line.startswith("| *100,000* |")]
        self.assertEqual(len(beyond), 1)
        self.assertIn(f"| *{start_s:.3g} s* |", beyond[0])
        self.assertIn("| *70 %* | *200 MB* |", beyond[0])
        measured = [line for line in lines if line.startswith("| 1,024 |")]
        self.assertIn("| 30.7 ms |", measured[0])

    def test_all_gather_sends_the_square_of_the_ranks(self):
        line = next(line for line in cost_model.markdown(figures_of(rows()))
                    if line.startswith("| *100,000* |"))
        self.assertIn("| *640 GB* | *41 TB* |", line)

    def test_where_too_little_was_measured_nothing_is_said(self):
        some = [one for one in rows() if one["question"] != "barrier"]
        self.assertEqual(list(cost_model.markdown(figures_of(some))), [])


if __name__ == "__main__":
    unittest.main()
