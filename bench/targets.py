"""What Muster is meant to reach, judged by what was measured: a limit each, mostly a ratio to the
floor of the same run. What needs a row that is not there is not judged."""

from dataclasses import dataclass


@dataclass
class Verdict:
    what: str
    target: str
    measured: str
    is_met: bool


def at_most(what, value, limit, unit=""):
    return Verdict(what, f"≤ {limit:g}{unit}", f"{value:.3g}{unit}", value <= limit)


def ratio(figures, what, limit, row, floor, value):
    """The minimum of a row against that of its floor."""
    if row is None or floor is None:
        return None
    measured, least = row.minimum(value), floor.minimum(value)
    return Verdict(what, f"≤ {limit:g} × floor", f"{measured / least:.2f} × (floor {least:.3g})",
                   measured <= limit * least)


def faster(what, least, row, ours):
    """How many times as long the other takes."""
    if row is None or ours is None:
        return None
    times = row.minimum("wall_ms") / ours.minimum("wall_ms")
    return Verdict(what, f"≥ {least:,} ×", f"{times:,.0f} ×", times >= least)


def operations(figures):
    for operation in ("set", "get", "add"):
        asked = {"operation": operation, "connections": 64, "cores": "1cpu"}
        if operation != "add":
            asked["value_bytes"] = 64
        rows = [figures.one("operations", subject, depth=1, **asked)
                for subject in ("muster", "echo")]
        yield ratio(figures, f"server CPU of a {operation}, 64 connections, one core", 1.15, *rows,
                    "server_us")
        row = figures.one("operations", depth=16, **asked)
        if row:
            yield at_most(f"server CPU of a {operation}, pipelined 16", row.minimum("server_us"),
                          0.25, " µs")


def large_values(figures):
    for operation in ("set", "get"):
        for connections in (1, 8):
            for mebibytes in (1, 16, 64):
                asked = {"operation": operation, "connections": connections,
                         "value_bytes": mebibytes << 20, "cores": "1cpu"}
                rows = [figures.one("large_values", subject, **asked)
                        for subject in ("muster", "memcached")]
                yield ratio(figures, f"server CPU of a {operation} of {mebibytes} MiB, "
                            f"{connections} connections, one core, beside memcached", 1.1, *rows,
                            "server_us")


def round_trips(figures):
    floor = figures.one("round_trips", "echo", client="raw", cores="1cpu")
    for client, limit in (("raw", 1.08), ("library, inline callback", 1.5),
                          ("library, blocking", 1.7)):
        row = figures.one("round_trips", client=client, cores="1cpu")
        yield ratio(figures, f"round trip on one core, {client}", limit, row, floor, "p50_us")
    row = figures.one("round_trips", client="library, waiting get", cores="1cpu")
    if row:
        yield at_most("requests of a get that must wait", row.maximum("requests"), 1)


def many(figures):
    row = figures.one("multi_get", cores="1cpu")
    if row:
        yield at_most("server CPU of a multi-get of 64 keys", row.minimum("server_us"), 6, " µs")
    rows = [figures.one("wake_ups", subject, waiters=1024, cores="2cpu")
            for subject in ("muster", "echo")]
    yield ratio(figures, "last wake-up of 1,024 waiters", 1.15, *rows, "last_us")
    rows = [figures.one("connect_storm", subject, connections=4096, cores="2cpu")
            for subject in ("muster", "echo")]
    yield ratio(figures, "storm of 4,096 connections, with hello and session", 1.5, *rows,
                "wall_ms")
    storms = figures.of("connect_storm", "muster")
    if storms:
        yield at_most("SYNs that had to be sent again in all storms",
                      max(row.maximum("syns_sent_again") for row in storms), 0)


def groups(figures):
    rows = [figures.one("barrier", subject, ranks=1024, cores="2cpu")
            for subject in ("muster", "echo")]
    if rows[0]:
        yield at_most("barrier of 1,024 ranks, all but the host",
                      rows[0].minimum("but_host_ms"), 12, " ms")
    yield ratio(figures, "the same, against the floor", 1.4, *rows, "but_host_ms")
    for call, least in (("barrier", 800), ("all_gather", 100)):
        rows = [figures.one("stateless_groups", subject, call=call, ranks=1024)
                for subject in ("tcpstore", "muster")]
        yield faster(f"{call} of 1,024 ranks, against vLLM's algorithm on TCPStore", least, *rows)
    row = figures.one("all_gather", ranks=1024, value_bytes=64, cores="2cpu")
    if row:
        yield at_most("bytes of an all_gather of 64 B to 1,024 ranks, against N² × 64",
                      row.maximum("bytes_of_least"), 1.1)
    row = figures.one("start", ranks=10_240, cores="2cpu")
    if row:
        yield at_most("10,240 ranks connect and join, server CPU",
                      row.minimum("server_ms") / 1e3, 1, " s")
        yield at_most("10,240 ranks connect and join, wall", row.minimum("wall_ms") / 1e3, 3, " s")
    rows = [row for row in figures.of("barrier", "muster", cores="1cpu")
            if 256 <= row.parameters["ranks"] <= 10_240]
    if any(row.parameters["ranks"] == 10_240 for row in rows):
        costs = [row.minimum("server_us_per_rank") for row in rows]
        yield at_most("barrier, 256 to 10,240 ranks: server CPU per rank, dearest to cheapest",
                      max(costs) / min(costs), 1.25)


def memory(figures):
    row = figures.one("memory", of="keys")
    if row and row.parameters["count"] == 100_000:
        yield at_most("memory per key, of 100,000", row.median("bytes_per_key"), 150, " B")
    row = figures.one("memory", of="idle connections")
    if row and row.parameters["count"] > 1000:
        yield at_most("memory per idle connection with a session",
                      row.median("bytes_per_connection"), 2048, " B")


def expiry(figures):
    rows = figures.of("expiry", "muster", measured="lateness")
    if rows:
        yield at_most("keys that expire before their time, by",
                      max(row.maximum("early_ms") for row in rows), 0, " ms")
    row = figures.one("expiry", keys=100_000, measured="lateness")
    if row:
        yield at_most("lateness of 100,000 keys, p99", row.median("late_p99_ms"), 2, " ms")
    row = figures.one("expiry", keys=1_000_000, measured="others' gets")
    if row:
        yield at_most("others' p99 while a million keys expire, against before",
                      row.median("p99_grows_by"), 2)


def as_fast(what, least, ours, others, value):
    """How many times as long the fastest of the others takes, by medians."""
    others = [row for row in others if row is not None]
    if ours is None or not others:
        return None
    times = min(row.median(value) for row in others) / ours.median(value)
    return Verdict(what, f"≥ {least:g} ×", f"{times:.2f} ×", times >= least)


def runtime(figures):
    """Of the calls of muster-runtime."""
    for ours in figures.of("synchronize_value", "muster"):
        for rival in ("torch_gloo", "torch_tcpstore"):
            yield as_fast(f"synchronize_value, {ours.parameters['ranks']} ranks, alone, against "
                          f"{rival}", 1, ours,
                          [figures.one("synchronize_value", rival, **ours.parameters)],
                          "alone_p50_us")
    for ours in figures.of("all_reduce", "shared_memory"):
        kibibytes = ours.parameters["bytes"] >> 10
        size = f"{kibibytes >> 10} MiB" if kibibytes >= 1024 else f"{kibibytes} KiB"
        yield as_fast(f"all_reduce of {size} by shared memory, {ours.parameters['ranks']} ranks, "
                      "against the faster Gloo", 2 if kibibytes >= 1024 else 1, ours,
                      [figures.one("all_reduce", rival, **ours.parameters)
                       for rival in ("gloo", "torch_gloo")], "round_us")
    for ours in figures.of("gather", "shared_memory"):
        yield as_fast("gather through shared memory, against memcpy", 0.7, ours,
                      [figures.one("gather", "memcpy", **ours.parameters)], "wall_ms")


def launcher(figures):
    """Of musterrun."""
    for ours in figures.of("start_ranks", "musterrun"):
        for rival, limit in (("bare", 1.5), ("torchrun", 0.2)):
            other = figures.one("start_ranks", rival, **ours.parameters)
            if other:
                yield at_most(f"start of {ours.parameters['ranks']} ranks, against {rival}",
                              ours.median("reported_ms") / other.median("reported_ms"), limit, " ×")
    for ours in figures.of("idle_ranks", "musterrun"):
        yield at_most(f"CPU of an hour in which {ours.parameters['ranks']} ranks run",
                      ours.median("cpu_s_per_hour"), 1, " s")


def encryption(figures):
    """Of TLS, against the same without it."""
    sealed = "muster, TLS"
    for depth, limit in ((1, 1.4), (16, 1.15)):
        for ours in figures.of("encrypted_operations", sealed, depth=depth):
            clear = figures.one("encrypted_operations", **ours.parameters)
            given = ours.parameters
            yield at_most(f"server CPU of a {given['operation']} with TLS, {given['connections']} "
                          f"connections, {depth} at a time",
                          ours.median("server_us") / clear.median("server_us"), limit, " ×")
    for ours in figures.of("encrypted_barrier", sealed):
        clear = figures.one("encrypted_barrier", **ours.parameters)
        yield at_most(f"barrier of {ours.parameters['ranks']:,} ranks with TLS",
                      ours.median("wall_ms") / clear.median("wall_ms"), 1.4, " ×")
    for ours in figures.of("encrypted_start", sealed, ranks=10_240):
        yield at_most("10,240 ranks connect and join with TLS", ours.median("wall_ms") / 1e3, 6,
                      " s")
    for ours in figures.of("encrypted_strangers", sealed):
        given = ours.parameters
        if given["beside"] != "nobody":
            yield at_most(f"p99 of {given['of']} beside 2,000 strangers a second "
                          f"({given['beside']}), against alone", ours.median("p99_grows_by"), 2,
                          " ×")
    for ours in figures.of("encrypted_reconnect", sealed):
        yield at_most(f"{ours.parameters['ranks']:,} clients are back that were cut at once, by "
                      "TLS", ours.median("wall_ms") / 1e3, 2, " s")
    for ours in figures.of("encrypted_memory", sealed):
        yield at_most("memory per idle session with TLS",
                      ours.median("bytes_per_connection") / 1024, 18, " KiB")


def beside_tcpstore(figures, question, what, limit, value, **asked):
    """At most so many times what each of TCPStore's servers takes."""
    for ours in figures.of(question, "muster_tcpstore", **asked):
        for rival in ("tcpstore", "tcpstore_libuv"):
            other = figures.one(question, rival, **ours.parameters)
            if other:
                yield at_most(what.format(**ours.parameters) + f", against {rival}",
                              ours.median(value) / other.median(value), limit, " ×")


def tcpstore(figures):
    """Of the port for programs that use TCPStore."""
    for connections, depth, limit in ((1, 1, 0.9), (64, 1, 0.75), (64, 32, 0.2)):
        yield from beside_tcpstore(
            figures, "tcpstore_operations", "server CPU of a {operation}, {connections} "
            "connections, {depth} at a time", limit, "server_us", connections=connections,
            depth=depth)
    yield from beside_tcpstore(figures, "tcpstore_wake_ups", "last of {waiters:,} awake", 1,
                               "last_us")
    yield from beside_tcpstore(figures, "tcpstore_storm", "{connections:,} connect at once", 1,
                               "wall_ms")
    yield from beside_tcpstore(figures, "tcpstore_multi_set", "MULTI_SET of {keys:,} keys", 0.05,
                               "wall_ms")
    yield from beside_tcpstore(figures, "tcpstore_barrier", "vLLM's barrier of {ranks} ranks", 0.8,
                               "wall_ms")


def python(figures):
    """Of calls from Python: against C++, and the bindings that programs of Python use."""
    for question, name in (("python_calls", "{operation}"),
                           ("python_barrier", "barrier of {processes}")):
        for ours in figures.of(question, "muster"):
            for rival, limit in (("muster_cpp", 1.6), ("tcpstore", 1), ("redis", 1)):
                other = figures.one(question, rival, **ours.parameters)
                if other:
                    yield at_most("client CPU of a " + name.format(**ours.parameters) +
                                  f" from Python, against {rival}",
                                  ours.median("processor_us") / other.median("processor_us"),
                                  limit, " ×")
    for ours in figures.of("python_import", "muster"):
        yield at_most("import muster", ours.median("wall_ms"), 50, " ms")


def drop_ins(figures):
    """Of what stands in the place of others' classes."""
    for ours in figures.of("vllm_group", "muster"):
        given = ours.parameters
        least = {8: 3, 64: 15}.get(given["processes"])
        if least:
            yield as_fast(f"{given['call']} of {given['processes']}, against vLLM's class", least,
                          ours, [figures.one("vllm_group", "tcpstore", **given)], "wall_us")
    for ours in figures.of("init_process_group", "muster"):
        other = figures.one("init_process_group", "tcpstore", **ours.parameters)
        if other and ours.parameters["ranks"] == 32:
            yield at_most("init_process_group of 32 ranks, against tcpstore",
                          ours.median("wall_ms") / other.median("wall_ms"), 1, " ×")


def verdicts(figures):
    for judge in (operations, large_values, round_trips, many, groups, memory, expiry, runtime,
                  launcher, encryption, tcpstore, python, drop_ins):
        yield from (verdict for verdict in judge(figures) if verdict is not None)
