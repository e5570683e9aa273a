"""What a server could tell of its groups: the documents of its stream and of /api/v1."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable
from typing import Any

Json = Any
Ranges = list[list[int]]

HEARD_S = 0.4


def now_ms() -> int:
    return round(time.time() * 1000)


def runs(states: list[str]) -> list[list[Any]]:
    """Run lengths, such as [["live", 7], ["missing", 1]]."""
    made: list[list[Any]] = []
    for state in states:
        if made and made[-1][0] == state:
            made[-1][1] += 1
        else:
            made.append([state, 1])
    return made


def ranges(ranks: Iterable[int]) -> Ranges:
    made: Ranges = []
    for rank in sorted(ranks):
        if made and made[-1][1] + 1 == rank:
            made[-1][1] = rank
        else:
            made.append([rank, rank])
    return made


def text_of(ranks: Iterable[int]) -> str:
    told = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges(ranks)]
    return ("rank " if len(told) == 1 and "-" not in told[0] else "ranks ") + ", ".join(told)


def with_bytes(field: str, name: str | bytes) -> dict[str, str]:
    """As src/json writes bytes: what is no UTF-8 is there exactly, too."""
    if isinstance(name, str):
        return {field: name}
    text = name.decode("utf-8", "replace")
    exact = base64.b64encode(name).decode()
    return {field: text} if text.encode() == name else {field: text, f"{field}_base64": exact}


class Group:
    """A group. What changes it makes its next document another one."""

    def __init__(self, name: str | bytes, size: int, namespace: str, hosts: str = "gpu"):
        self.name, self.size, self.namespace, self.hosts = name, size, namespace, hosts
        self.epoch, self.round, self.call = 1, 0, ""
        self.states = ["live"] * size
        self.state = "working"
        self.since = now_ms() - 3_600_000
        self.held_up_since: int | None = None
        self.why = ""
        self.failure: Json = None
        self.candidates: list[Json] = []
        self.waited: list[int] = []  # beside those that are missing or absent
        self.label = "trainer-{rank}"

    @property
    def text(self) -> str:
        return self.name if isinstance(self.name, str) else self.name.decode("utf-8", "replace")

    def ranks_in(self, state: str) -> list[int]:
        return [rank for rank, is_now in enumerate(self.states) if is_now == state]

    def process(self, rank: int) -> Json:
        return {"host": f"{self.hosts}-{rank // 8:03}", "pid": 4000 + rank,
                "label": self.label.format(rank=rank), "process": f"{self.text}-{rank}"}

    # What happens to it.

    def work(self, at_round: int = 0) -> Group:
        self.states = ["live"] * self.size
        self.state, self.round, self.call, self.why = "working", at_round, "", ""
        self.held_up_since = self.failure = None
        self.since = now_ms()
        return self

    def form(self, absent: Iterable[int], for_s: float = 0) -> Group:
        absent = list(absent)
        self.epoch, self.state = 0, "forming"
        self.states = ["waiting"] * self.size
        for rank in absent:
            self.states[rank] = "absent"
        self.since = self.held_up_since = now_ms() - round(for_s * 1000)
        self.why = f"{text_of(absent)} never joined; {self.size - len(absent)} ranks wait for them"
        return self

    def wait(self, missing: Iterable[int], call: str = "barrier", at_round: int = 812,
             for_s: float = 2) -> Group:
        missing = list(missing)
        self.state, self.call, self.round = "waiting", call, at_round
        self.states = ["waiting"] * self.size
        for rank in missing:
            self.states[rank] = "missing"
        self.since = self.held_up_since = now_ms() - round(for_s * 1000)
        who = self.process(missing[0])
        self.why = (f"{text_of(missing)} (host {who['host']}, pid {who['pid']}) has not called "
                    f"round {at_round}, {call}; its heartbeats come, so it is alive and busy")
        return self

    def idle(self) -> Group:
        """A rank waits for an object that nobody owes it."""
        self.work()
        self.state, self.call = "waiting", "recv_obj"
        self.states[0] = "waiting"
        self.why = "rank 0 waits for an object of tag 7 from rank 1"
        return self

    def regroup(self, missing: Iterable[int], for_s: float = 0) -> Group:
        missing = list(missing)
        self.wait(missing, "regroup", 0, for_s)
        self.state = "regrouping"
        self.why = f"{text_of(missing)} has not called regroup"
        return self

    def fail(self, lost: Iterable[int], cause: str, for_s: float = 0) -> Group:
        lost = list(lost)
        self.states = ["live"] * self.size
        for rank in lost:
            self.states[rank] = "lost"
        self.state, self.held_up_since = "failed", None
        self.since = now_ms() - round(for_s * 1000)
        self.failure = self.error("rank_lost", lost, cause)
        self.why = f"{text_of(lost)} was lost, cause {cause}; nobody has called regroup"
        return self

    # What is told of it.

    def error(self, code: str, ranks: list[int], cause: str = "") -> Json:
        told: list[Json] = [{"rank": rank, **self.process(rank), "silence_s": 12.1,
                             **({"cause": cause} if cause else {})} for rank in ranks[:64]]
        who = ", ".join(f"rank {one['rank']} (host {one['host']}, pid {one['pid']})"
                        for one in told[:8])
        verb = {"rank_lost": "lost", "timed_out": "missing"}.get(code, "refused")
        error: Json = {"code": code, "number": 60, "operation": self.call or "barrier",
                 **with_bytes("group", self.name), "epoch": self.epoch, "round": self.round,
                 "decided_by": "server", "ranks": told, "ranks_at_fault": ranks,
                 "message": f"{code}: {self.call or 'barrier'} of group \"{self.text}\" (epoch "
                            f"{self.epoch}, round {self.round}): {verb} {who}"}
        if cause:
            error["cause"] = cause
        return error

    def document(self) -> Json:
        """As a member of `groups` in the stream."""
        made = {"namespace": self.namespace, **with_bytes("name", self.name), "epoch": self.epoch,
                "world_size": self.size, "state": self.state, "ranks": runs(self.states),
                "candidates": len(self.candidates), "since": self.since, "round": self.round,
                "why": self.why}
        if self.held_up_since is not None:
            made["held_up_since"] = self.held_up_since
            made["waits_for"] = ranges(self.ranks_in("missing") + self.ranks_in("absent")
                                       + self.waited)
            made["waiting"] = ranges(self.ranks_in("waiting"))
        if self.call:
            made["call"] = self.call
        if self.failure:
            made["failure"] = self.failure
        return made

    def summary(self) -> Json:
        """As `musterctl groups --json`."""
        is_open = self.state == "waiting"
        age_s = (now_ms() - self.since) / 1000
        return {**with_bytes("group", self.name), "state": "formed" if self.epoch else "forming",
                "epoch": self.epoch, "world_size": self.size, "live": len(self.states),
                "candidates": len(self.candidates), "round": self.round if is_open else 0,
                "round_age_s": age_s if is_open else 0, "namespace": self.namespace}

    def members(self) -> list[Json]:
        told = {"waiting": "live", "missing": "live"}
        return [{"rank": rank, "state": told.get(state, state), **self.process(rank),
                 "silence_s": 12.1 if state in ("silent", "away", "lost") else HEARD_S}
                for rank, state in enumerate(self.states) if state != "absent"]

    def report(self) -> Json:
        """As `musterctl group NAME --json`."""
        age_s = (now_ms() - self.since) / 1000
        waited = self.ranks_in("missing")
        report = {**with_bytes("group", self.name), "state": "formed" if self.epoch else "forming",
                  "waits": self.held_up_since is not None,
                  "hangs": self.held_up_since is not None and age_s >= 10,
                  "epoch": self.epoch, "world_size": self.size, "age_s": 3600.0,
                  "members": self.members(), "missing": self.ranks_in("absent"),
                  "candidates": self.candidates, "receivers": [],
                  "explanation": self.explanation(age_s)}
        if self.state == "waiting" and waited:
            report["round"] = {"number": self.round, "call": self.call, "age_s": age_s,
                               "called": self.ranks_in("waiting"), "missing": waited}
        if self.state == "regrouping":
            report["regroup"] = {"new_size": self.size, "everyone": False, "min_size": 1,
                                 "age_s": age_s, "called": self.ranks_in("waiting"),
                                 "missing": waited}
        if self.state == "waiting" and not waited:
            report["receivers"] = [{"rank": 0, "source": 1, "tag": 7, "sequence": 3,
                                    "age_s": age_s}]
        if self.failure:
            report["last_failure"] = {**self.failure, "call": "barrier", "age_s": age_s}
        return report

    def explanation(self, age_s: float) -> list[str]:
        lines = [f'group "{self.text}": epoch {self.epoch}, {self.size} ranks, formed 1 h ago']
        if self.epoch == 0:
            lines = [f'group "{self.text}": forms; {self.size - len(self.ranks_in("absent"))} of '
                     f"{self.size} ranks are there, the first for {age_s:.1f} s"]
        if self.held_up_since is not None and age_s >= 10:
            lines.append(f"  it hangs: somebody is held up for {age_s:.1f} s")
        missing = self.ranks_in("missing") + self.ranks_in("absent")
        if missing:
            lines.append(f"  round {self.round}, {self.call}: open for {age_s:.1f} s, called by "
                         f"{text_of(self.ranks_in('waiting'))}")
            lines.append(f"    waits for {text_of(missing)}:")
            for rank in missing[:16]:
                who = self.process(rank)
                lines.append(f"      rank {rank} (host {who['host']}, pid {who['pid']}, label "
                             f"{who['label']}, silent for 0.4 s)")
        if self.failure:
            lines.append(f"  the last round that failed, {age_s:.1f} s ago: "
                         f"{self.failure['message']}")
        return lines


class World:
    """All that a server tells. A test changes it, and has its double publish that."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.events: list[Json] = []
        self.known_for_s = 5400.0
        self.server: Json = {"version": "0.9.0", "pid": 2417, "host": "rack7-head",
                             "uptime_ms": 5_400_000, "started": now_ms() - 5_400_000,
                             "credentials": False, "draining": False}
        self.sessions = {"connected": 0, "away": 0}
        self.operations = 0.0
        self.waits = [0] * 12
        self.prefixes: list[Json] = []
        self.limits: list[Json] = []
        self.groups_left_out = 0
        self.use_limits(0.1)

    def use_limits(self, share: float) -> None:
        gib = 1 << 30
        self.limits = [
            {"name": "memory", "used": round(share * gib), "max": gib, "unit": "bytes"},
            {"name": "sessions", "used": round(share * 16384), "max": 16384, "unit": ""},
            {"name": "connections", "used": round(share * 16384), "max": 16384, "unit": ""},
            {"name": "namespaces", "used": 3, "max": 4096, "unit": ""},
            {"name": "waits_for_several", "used": 120, "max": 262144, "unit": ""},
            {"name": "log_lines", "used": 40211, "max": 0, "unit": ""},
        ]

    def add(self, name: str | bytes, size: int, namespace: str = "", hosts: str = "gpu") -> Group:
        self.groups.append(Group(name, size, namespace, hosts))
        return self.groups[-1]

    def note(self, group: Group, what: str, *, age_s: float = 0, ranks: Iterable[int] = (),
             cause: str = "", code: str = "", count: int = 1) -> Json:
        """Something happened to the group."""
        event = {"serial": len(self.events) + 1, "what": what, **with_bytes("group", group.name),
                 "epoch": group.epoch, "world_size": group.size, "at": now_ms() - age_s * 1000,
                 "lasted_s": 0.0, "count": count, "namespace": group.namespace}
        ranks = list(ranks)
        if code or ranks:
            event["error"] = group.error(code or "rank_lost", ranks, cause)
        if what.startswith("join_"):
            event.update(group.process(ranks[0] if ranks else 0))
        self.events.append(event)
        return event

    @staticmethod
    def aged(event: Json) -> Json:
        told = {name: value for name, value in event.items() if name != "at"}
        return {**told, "age_s": round((now_ms() - event["at"]) / 1000, 3)}

    def find(self, namespace: str, name: bytes) -> Group | None:
        for group in self.groups:
            exact = group.name.encode() if isinstance(group.name, str) else group.name
            if group.namespace == namespace and exact == name:
                return group
        return None

    def whole(self) -> Json:
        """What a viewer is told at first, but for the time."""
        bounds: list[float | None] = [1, 5, 25, 100, 500, 1000, 5000, 10000, 30000, 60000, 300000]
        sums = [sum(self.waits[: index + 1]) for index in range(12)]
        return {
            "server": self.server,
            "limits": self.limits,
            "known_for_ms": round(self.known_for_s * 1000),
            "groups": [group.document() for group in self.groups],
            "events": list(self.events),
            "sessions": self.sessions,
            "keys": {"count": sum(entry["count"] for entry in self.prefixes),
                     "bytes": sum(entry["bytes"] for entry in self.prefixes),
                     "prefixes": self.prefixes},
            "waits": {"buckets": [{"le_ms": le, "count": count}
                                  for le, count in zip([*bounds, None], sums)],
                      "count": sums[-1], "sum_ms": sums[-1] * 40},
            "rates": {"operations": self.operations},
            "groups_left_out": self.groups_left_out,
        }
