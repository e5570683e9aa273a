"""All attacks, and what each must not achieve."""

import re

from case import MIB, Case, Figure, at_least, at_most, exactly

KEPT_MAX = 64
LEAKED_GROUPS, GROUPS_MAX = 64, 4096
NAMESPACES_PER_ADDRESS, NAMESPACES_MAX = 256, 4096
FEW_LENGTHS = {"lengths": 8, "value_bytes": 65_536, "wave_ms": 300}
IDLE_MIB, CONNECTION_KIB = 24, 3  # resident without an attack, and for each connection


def all_in(run):
    yield exactly("newcomers welcomed", run.did["welcome"], run.did["count"])
    yield exactly("SYNs sent again", run.did["syns_sent_again"], 0)
    yield Figure("all connected after", f"{run.did['connected_s']:.2f} s", "", True, is_time=True)


def few_sessions(run):
    """Those of the bystanders, and those that have asked for something in the last grace."""
    yield at_least("welcomed", run.did["welcome"], 1)
    yield exactly("refused", run.did.get("refused", 0), 0)
    yield at_most("sessions left", int(run.status["sessions_count"]), run.sessions_max)


def places_for_others(run):
    addresses = int(run.arguments.get("addresses", 1))
    allowed = NAMESPACES_PER_ADDRESS * addresses
    yield exactly("namespaces made", run.did["made"],
                  min(allowed, NAMESPACES_MAX, int(run.arguments["count"])))
    yield at_least("refused with busy", run.did["busy"], 1)


def groups_limited(run):
    """Those of others may be in the reserve."""
    yield at_least("groups made", run.did["made"], 1)
    yield at_most("groups made", run.did["made"], GROUPS_MAX)
    yield at_most("groups left", int(run.status["groups_count"]), GROUPS_MAX + GROUPS_MAX // 8)


def leaked(run):
    """One address has all that it may have; an operator of the server's own user gets in."""
    yield exactly("sessions welcomed", run.did["welcome"], int(run.arguments["connections_max"]))
    yield exactly("groups made", run.did["groups"], LEAKED_GROUPS)
    yield at_least("values refused", run.did["replies"].get("resource_exhausted", 0), 1)
    yield exactly("commands of an operator that failed", run.operator_failures, [])


def filled(run):
    """Whoever is alone may take almost everything, and is refused then."""
    taken = run.did["taken"] * int(run.arguments["value_bytes"])
    yield at_least("taken", taken / MIB, 0.75 * run.case.memory_bytes_max / MIB, " MiB")
    yield at_least("refused", run.did["replies"].get("resource_exhausted", 0), 1)


def refused(run):
    yield at_least("refused", run.did["replies"].get("resource_exhausted", 0), 1)


def all_told(run):
    yield exactly("all told", run.did["all_told"], True)


def absent_at_once(run):
    yield exactly("absent at once", run.did["absent_at_once"], 1)


def answered(run):
    yield at_least("answered", run.did["answered"], 1)


def ended(run):
    yield at_least("ended", run.did["ended"], 1)


def served(run):
    yield at_least("bytes received", run.did["received_bytes"], 8)


def nothing_executed(run):
    yield exactly("executed", run.did["executed"], run.did.get("expected", 0))


def kept_limited(run):
    yield exactly("kept", run.did["kept"], KEPT_MAX)
    yield exactly("refused", run.did["refused"], int(run.arguments["count"]) - KEPT_MAX)


def all_lengths(run):
    """Without the seed, what was seen cannot be seen again."""
    yield Figure("lengths", f"{run.did['lengths']}, seed {run.did['seed']}", ">= 2",
                 run.did["lengths"] >= 2)
    yield at_least("connections at once", run.did["connections"], 1)
    bound = (IDLE_MIB * MIB + 1.25 * run.used_max +
             CONNECTION_KIB * 1024 * int(run.arguments["connections"]))
    yield at_most("resident, of what is counted", run.resident / MIB, bound / MIB, " MiB")


def denied(run):
    yield exactly("denied", run.did["denied"], run.did["count"])


LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error) ")
RAW = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffd]")


def log_is_text(run):
    lines = run.log.split("\n")[:-1]
    yield exactly("log lines with raw characters", sum(bool(RAW.search(line)) for line in lines), 0)
    yield exactly("forged lines", sum(not LINE.match(line) or " forged" in line.split(" ")[1:3]
                                      for line in lines), 0)


CASES = [
    Case("non_readers_list", "200 connections ask for long lists and never read",
         "415 MiB resident", "non_readers", {"operation": "list", "connections": 200},
         {"connections": 50}),
    Case("non_readers_get", "1,500 connections pipeline gets of 30 kB and never read",
         "988 MiB resident", "non_readers",
         {"operation": "get", "connections": 1500, "value_bytes": 30_000}, {"connections": 100}),
    Case("non_readers_multi_get", "200 connections pipeline multi_get and never read",
         "7 MiB resident", "non_readers",
         {"operation": "multi_get", "connections": 200, "value_bytes": 30_000},
         {"connections": 50}),
    Case("non_readers_awaited", "200 connections wait for a value of 1 MB and never read it", "–",
         "non_readers", {"operation": "awaited", "connections": 200, "value_bytes": 1_000_000},
         {"connections": 50}),
    Case("unread", "4,000 connections pipeline gets of values of any length, or send parts of "
         "such, and never read", "379 MiB resident with 8,000", "unread", {"connections": 4000},
         {"connections": 800, **FEW_LENGTHS}, all_lengths, is_sampled=True),
    Case("unread_tls", "the same by TLS", "165 MiB resident with 32 MiB", "unread",
         {"connections": 4000, "tls": 1}, {"connections": 250, **FEW_LENGTHS}, all_lengths,
         memory_bytes_max=32 * MIB, is_by_tls=True, is_sampled=True),
    Case("half_hellos", "2,000 half hellos from one address, opened again when closed",
         "newcomers wait for ever, resumes fail", "half_hellos", {"count": 2000}, {"count": 300}),
    Case("half_hellos_full", "22,000 half hellos, more than there are places",
         "newcomers wait for ever", "half_hellos", {"count": 22_000, "addresses": 2},
         {"count": 2000}, addresses=2),
    Case("newcomers", "16,000 newcomers at once, hellos only after all have connected",
         "1,803 to 6,524 SYNs sent again", "newcomers", {"count": 16_000, "addresses": 4},
         {"count": 3000}, all_in, addresses=4, memory_bytes_max=256 * MIB),
    Case("namespaces", "4,096 namespaces with one key each, from one address",
         "new namespaces refused for good, the default one, too", "namespaces", {"count": 4096},
         {"count": 300}, places_for_others),
    Case("namespaces_all", "4,400 namespaces with one key each, from 20 addresses", "the same",
         "namespaces", {"count": 4400, "addresses": 20}, {"count": 600, "addresses": 2},
         places_for_others, addresses=20),
    Case("garbage", "hello, garbage, close in a loop", "16,384 sessions, all new ones busy",
         "garbage", {}, {}, few_sessions),
    Case("garbage_held", "the same, with a request before it", "the same", "garbage",
         {"requests": 1}, {}, None),
    Case("fill", "one namespace fills memory", "join, send and barrier of others fail",
         "fill", {"namespace": "greedy", "value_bytes": 65_536}, {}, filled),
    Case("fill_same", "the same in the namespace of the others", "the same", "fill",
         {"value_bytes": 65_536}, {}, filled),
    Case("parked", "100,000 calls wait for keys of 1,000 bytes", "–", "parked",
         {"sessions": 100, "each": 1000}, {}, refused, memory_bytes_max=16 * MIB),
    Case("objects", "objects of 10 kB that nobody receives, in 4 groups", "–", "objects",
         {"value_bytes": 10_000}, {"value_bytes": 200_000}, refused, memory_bytes_max=16 * MIB),
    Case("groups", "5 sessions take as many groups as they get", "all 4,096 groups",
         "groups", {"sessions": 5, "each": 1000}, {}, groups_limited),
    Case("leak", "one client takes all sessions, groups and memory; then others come",
         "the others, and operators, are busy", "leak",
         {"connections_max": 4096, "sessions": 4200, "groups": 100, "values": 300},
         {"connections_max": 64, "sessions": 70}, leaked, memory_bytes_max=16 * MIB,
         flags=("--groups-per-namespace-max", str(LEAKED_GROUPS)), is_full=True),
    Case("flood_sessions", "10 connections pipeline sessions, of 10,000",
         "2.6 s of CPU in one turn", "flood", {"operation": "sessions"},
         {"sessions": 300, "waits": 1000, "groups": 100}, answered, memory_bytes_max=256 * MIB),
    Case("flood_waiters", "the same with waiters, of 100,000", "300 to 450 ms of CPU",
         "flood", {"operation": "waiters"}, {"sessions": 300, "waits": 1000, "groups": 100},
         answered, memory_bytes_max=256 * MIB),
    Case("flood_mix", "the same with all that operators ask", "300 to 450 ms of CPU",
         "flood", {"operation": "mix"}, {"sessions": 300, "waits": 1000, "groups": 100},
         answered, memory_bytes_max=256 * MIB),
    Case("bound_keys", "the end of a session with 1,000,000 bound keys",
         "a turn of 514 to 769 ms", "bound_keys", {"count": 1_000_000}, {"count": 20_000},
         absent_at_once, memory_bytes_max=512 * MIB),
    Case("waiters", "a set for which 300,000 wait", "a turn of 710 ms", "waiters",
         {"count": 300_000}, {"count": 10_000}, None, memory_bytes_max=512 * MIB),
    Case("group", "a group of 10,000 forms and breaks", "a turn of 254 to 290 ms", "group",
         {"count": 10_000}, {"count": 1000}, all_told, memory_bytes_max=256 * MIB),
    Case("round", "a round of 256 MiB", "–", "round", {"ranks": 16, "value_bytes": 16_777_000},
         {"ranks": 8, "value_bytes": 1_000_000}, all_told, memory_bytes_max=320 * MIB),
    Case("large_value", "a value of 64 MiB is set, and 4 ask for it", "–", "large_value",
         {"value_bytes": 64 * MIB - 1000}, {"value_bytes": 4 * MIB}, all_told,
         memory_bytes_max=256 * MIB, flags=("--value-bytes-max", str(64 * MIB))),
    Case("ended_group", "a group of 2 ends in which 1,000,000 objects wait",
         "a turn of 17 ms with 500,000",
         "ended_group", {"count": 1_000_000}, {"count": 20_000}, absent_at_once,
         memory_bytes_max=512 * MIB),
    Case("removed_values", "one call removes 56 values of 16 MiB", "54 ms with 60 of them",
         "removed_values", {"count": 56, "value_bytes": 16 * MIB - 1000},
         {"count": 50, "value_bytes": 1_000_000}, all_told, memory_bytes_max=1024 * MIB),
    Case("observer", "an observer declares others dead, joins, sends",
         "9,998 of 10,000 ranks lost", "observer", {}, {}, denied),
    Case("names", "names with control characters", "raw in the log", "names", {}, {},
         log_is_text),
    Case("begin_and_end", "sessions that begin and end in a loop", "6,842 log lines a second",
         "begin_and_end", {}, {}, few_sessions),
    Case("blind_writes", "requests in the piece of the hello, or behind a guessed echo",
         "executed", "blind_writes", {}, {"count": 50}, nothing_executed),
    Case("old_ids", "ids that go backwards, or come again after their acknowledgement",
         "executed", "old_ids", {}, {}, nothing_executed),
    Case("unacknowledged", "1,000 kept replies that are not acknowledged",
         "an error that was not documented", "unacknowledged", {"count": 1000}, {}, kept_limited),
    *(Case(f"tcpstore_{attack}", what, "–", f"tcpstore_{attack}", arguments, small, counted,
           is_at_tcpstore=True, is_sampled=counted is all_lengths)
      for attack, what, arguments, small, counted in (
        ("parts", "2,000 clients of TCPStore send a part of a value of 16 MiB and stop",
         {"count": 2000}, {"count": 300}, None),
        ("garbage", "what no client of TCPStore says, in a loop", {}, {}, ended),
        ("multi_set", "10 clients of TCPStore set 16,384 keys by a request, in a loop",
         {"connections": 10, "keys": 16_384}, {"keys": 2000}, served),
        ("non_readers", "500 clients of TCPStore pipeline gets of 30 kB and never read",
         {"connections": 500, "value_bytes": 30_000}, {"connections": 100}, None),
        ("lists", "10 clients of TCPStore list 50,000 keys in a loop",
         {"connections": 10, "keys": 50_000}, {"keys": 5000}, served),
        ("unread", "4,000 clients of TCPStore get values of any length, or send parts of such, and "
         "never read", {"connections": 4000},
         {"connections": 800, **FEW_LENGTHS}, all_lengths),
        ("waits", "64 clients of TCPStore wait for 1,000 keys each, and go, in a loop",
         {"connections": 64, "each": 1000}, {"each": 100}, None))),
]
