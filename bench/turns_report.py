"""Makes the page of a run of turns.py, such as runtime.md.

turns_report.py FOUND.json FOLDER   writes PAGE.json, which is the summary, and PAGE.md, which is
                                    made of the summary alone. Prints the targets, and which are
                                    met. FOUND.json may be a summary, too.
"""

import sys
from pathlib import Path

from figures import Figures, read, summary, text_of, union
from report import LOAD_MAX, number, table

# Of each page: title, command, and what its programs are.
PAGES = {
    "runtime": ("Calls of muster-runtime", "tools/dev bench --runtime --peers",
                "Each rank is a process of this machine."),
    "musterrun": ("What musterrun costs", "tools/dev bench --launch --peers",
                  "All ranks are on this machine."),
    "encryption": ("What TLS costs", "tools/dev bench --encryption --peers",
                   "Each server has one core, and its clients are one thread on another one."),
    "tcpstore": ("Programs that use TCPStore", "tools/dev bench --tcpstore --peers",
                 "Each server has one core, and its clients are one thread on another one."),
    "python": ("Calls from Python", "tools/dev bench --python --peers",
               "Each client is a process of this machine; the servers share its last processor."),
    "drop_ins": ("In the place of others' classes", "tools/dev bench --drop-ins --peers",
                 "All processes are on this machine."),
}
TITLES = {
    "synchronize_value": "A value of rank 0 for all ranks",
    "all_reduce": "all_reduce of float32",
    "gather": "A gather through shared memory",
    "start_ranks": "A start",
    "restart_ranks": "A restart",
    "idle_ranks": "A job that runs",
    "encrypted_operations": "Operations",
    "encrypted_barrier": "A barrier",
    "encrypted_start": "To connect and join",
    "encrypted_records": "OpenSSL's part",
    "encrypted_memory": "Memory of a session that does nothing",
    "encrypted_strangers": "Strangers who begin TLS two thousand times in a second",
    "encrypted_reconnect": "All connections are cut at once",
    "tcpstore_operations": "Operations",
    "tcpstore_wake_ups": "Until the last of many who wait is awake",
    "tcpstore_storm": "Many who connect at once",
    "tcpstore_multi_set": "Many keys at once",
    "tcpstore_barrier": "vLLM's barrier on TCPStore",
    "python_calls": "One call after the other",
    "python_barrier": "A barrier of processes",
    "python_import": "An import",
    "vllm_group": "vLLM's StatelessProcessGroup",
    "init_process_group": "torch.distributed's init_process_group",
}
NOTES = {
    "synchronize_value": [
        "An int64. muster: `synchronize_value`, with `musterd` as a process of its own. gloo: a "
        "broadcast by muster-gloo. torch_gloo: `torch.distributed.broadcast`. torch_tcpstore: "
        "rank 0 sets a counted key, the others get it; rank 0 hosts the server, and does not wait "
        "for anybody.",
        "",
        "`round_us`: back to back, so rank 0 runs ahead where its call does not wait. `alone`: "
        "rank 0 calls when all others wait, until the last one has the value."],
    "all_reduce": [
        "In place. shared_memory: `all_reduce_tensor`. gloo: the communicator of muster-gloo, in "
        "the same processes, in turns. torch_gloo: `torch.distributed.all_reduce`. All back to "
        "back."],
    "gather": [
        "shared_memory: `with_gathered_tensors`, until the body runs on the first rank and has "
        "all. memcpy: the ranks that write, at the same time, each copy as many bytes into a new "
        "file in /dev/shm that they have mapped. The first rank's own tensor is not copied in "
        "either. The processor works as long as that for every one of the ranks that write, so "
        "this is the speed of all together on the cores of this machine."],
    "start_ranks": [
        "Each rank writes a few bytes into a FIFO, and ends. `reported`: from the start of the "
        "launcher until the last rank has written; `ended`: until the launcher has. bare: a "
        "program that forks and executes as many processes, and waits for them; it knows of no "
        "failure, no output and no signal. torchrun: Debian's, with `--no_python`."],
    "restart_ranks": [
        "All ranks wait, and rank 0 fails. `again`: from then until the last rank of the next "
        "attempt has written. torchrun looks for ends every 0.1 s here; its default is 5 s."],
    "idle_ranks": [
        "The ranks wait. The processor time of the launcher alone, of musterrun with its guardian, "
        "within a minute, times 60."],
    "encrypted_operations": [
        "All connections are busy. Muster has a key of its own (TLS 1.3, PSK with X25519), redis "
        "and etcd a certificate (TLS 1.3, P-256). Figures are of the server for one operation.",
        "",
        "etcd is a cluster of one, without fsync, and is asked by its API in JSON over HTTP/1.1, "
        "which is slower than gRPC: etcd turns each request into one by gRPC to itself, by TLS "
        "where it has TLS. So what counts of it is what it costs with TLS against without."],
    "encrypted_barrier": [
        "All ranks are one thread, which encrypts and decrypts for all of them, and is a good part "
        "of the time."],
    "encrypted_start": [
        "From nothing: connections, handshakes, sessions, and one group that all join."],
    "encrypted_records": [
        "In memory, without a server: a record of each connection is read, and one written, one "
        "connection after the other. This much of each request and its answer with TLS is "
        "OpenSSL's. With many connections what it keeps of each is not in the processor's caches."],
    "encrypted_memory": ["What the server has grown by, divided by the connections."],
    "encrypted_strangers": [
        "64 members get a key, one of them every 0.5 ms, and 64 ranks meet in a barrier every 5 "
        "ms. Beside them strangers connect from other addresses and send a ClientHello: its "
        "headers and random bytes, one with a key that nobody has, or what a member has said. Each "
        "is there for 250 ms. `KiB grown`: the server's resident memory, the most, above what it "
        "was before the first stranger. Without TLS the server refuses each at once."],
    "encrypted_reconnect": [
        "The ranks of a group are cut off at the same moment, connect again and resume their "
        "sessions; with TLS each has a handshake. Then all meet in a barrier of the same epoch, so "
        "nobody was lost."],
    "tcpstore_operations": [
        "muster_tcpstore: musterd at its port for them. tcpstore: the server of PyTorch 1; "
        "tcpstore_libuv: that of a newer one. A set has no reply: a CHECK of the key follows it in "
        "the same write, and counts as part of it. Figures are of the server for one operation."],
    "tcpstore_wake_ups": [
        "Each waits for one key, and gets it when it is told that it is there. `last`: from the "
        "set until the last one has the value."],
    "tcpstore_storm": ["Until all are connected and have an answer."],
    "tcpstore_multi_set": [
        "One MULTI_SET of values of 64 bytes, and a count of the keys, which is answered when it "
        "is done. PyTorch 1 has no such command."],
    "tcpstore_barrier": [
        "Request for request as vLLM's stateless group has it, all ranks simulated by one "
        "thread, which is a good part of the time."],
    "python_calls": [
        "One process, values of 64 bytes. `CPU` is that of the client, with all of its threads. "
        "muster: the package. muster_cpp: the blocking calls of C++, in a program of C++. "
        "tcpstore: torch's own binding. redis: redis-py."],
    "python_barrier": [
        "Figures are medians over the processes. tcpstore: a counter, and a key that the last one "
        "sets and all wait for. redis: a counter, and a list that the last one fills and all pop."],
    "vllm_group": [
        "muster: the class of `muster.compat.vllm`. tcpstore: the algorithm of vLLM's class on "
        "torch's TCPStore. In both rank 0 hosts the server. Each process is a rank, and calls "
        "without a pause; figures are medians over the ranks. send_recv: an object to the next "
        "rank, and one from the rank before. `CPU` is that of a rank with all of its threads but "
        "the server's. The original's send does not wait until the server has the object; ours "
        "does."],
    "init_process_group": [
        "With Gloo, on a store that is given: muster: `muster.torch.Store`. tcpstore: torch's. "
        "Each with a server in a process of Python of its own. Until the last rank has its group, "
        "the median of the calls. `CPU` is that of all ranks together. Connected: until the last "
        "of the ranks, which begin together, has its store."],
    "python_import": ["Of an interpreter that runs already, which has imported nothing else."],
}
# The columns of a question, each of every subject: name and head.
COLUMNS = {
    "synchronize_value": [("round_us", "µs a round"), ("p50_us", "p50"), ("p99_us", "p99"),
                          ("alone_p50_us", "alone, p50"), ("alone_p99_us", "alone, p99"),
                          ("cpu_us", "CPU µs a round, all processes")],
    "gather": [("wall_ms", "ms"), ("written_gb_per_s", "GB/s written")],
    "start_ranks": [("reported_ms", "reported, ms"), ("ended_ms", "ended, ms"),
              ("cpu_ms", "CPU ms, all processes")],
    "restart_ranks": [("again_ms", "again, ms")],
    "idle_ranks": [("cpu_s_per_hour", "CPU s of an hour")],
    "encrypted_operations": [("server_us", "CPU µs"), ("p50_us", "p50, µs"), ("p99_us", "p99, µs")],
    "encrypted_barrier": [("wall_ms", "ms"), ("server_ms", "CPU ms"),
                          ("client_ms", "CPU ms of the clients")],
    "encrypted_start": [("wall_ms", "ms"), ("server_ms", "CPU ms"),
                        ("client_ms", "CPU ms of the clients")],
    "encrypted_records": [("read_ns", "ns a record read"), ("write_ns", "ns a record written")],
    "encrypted_memory": [("bytes_per_connection", "bytes")],
    "encrypted_strangers": [("p50_us", "p50, µs"), ("p99_us", "p99, µs"),
                            ("p99_grows_by", "p99, against nobody beside"),
                            ("server_share_of_wall", "CPU of the server"),
                            ("others_per_s", "strangers, per s"),
                            ("refused_per_s", "refused, per s"), ("grown_kib", "KiB grown")],
    "encrypted_reconnect": [("wall_ms", "all are back, ms"), ("p50_ms", "p50, ms"),
                            ("server_ms", "CPU ms"), ("client_ms", "CPU ms of the clients")],
    "tcpstore_operations": [("server_us", "CPU µs"), ("p50_us", "p50, µs"), ("p99_us", "p99, µs")],
    "tcpstore_wake_ups": [("last_us", "last, µs"), ("p50_us", "p50, µs"),
                          ("server_us", "CPU µs of each")],
    "tcpstore_storm": [("wall_ms", "ms"), ("server_us", "CPU µs of each"),
                       ("slowest_ms", "slowest, ms")],
    "tcpstore_multi_set": [("wall_ms", "ms"), ("server_ms", "CPU ms")],
    "tcpstore_barrier": [("wall_ms", "ms"), ("server_ms", "CPU ms"),
                         ("client_ms", "CPU ms of the clients")],
    "python_calls": [("processor_us", "CPU µs"), ("wall_us", "µs")],
    "python_barrier": [("processor_us", "CPU µs"), ("wall_us", "µs")],
    "python_import": [("wall_ms", "ms")],
    "vllm_group": [("wall_us", "µs"), ("processor_us", "CPU µs"),
                   ("server_us", "CPU µs of the server")],
    "init_process_group": [("wall_ms", "ms"), ("processor_ms", "CPU ms"),
                           ("connect_ms", "connected, ms")],
}
OURS = {"synchronize_value": "muster", "all_reduce": "shared_memory", "gather": "shared_memory",
        "start_ranks": "musterrun", "restart_ranks": "musterrun", "idle_ranks": "musterrun",
        "encrypted_operations": "muster", "encrypted_barrier": "muster",
        "encrypted_start": "muster", "encrypted_records": "OpenSSL",
        "encrypted_memory": "muster",
        "encrypted_strangers": "muster", "encrypted_reconnect": "muster",
        **dict.fromkeys(("tcpstore_operations", "tcpstore_wake_ups", "tcpstore_storm",
                         "tcpstore_multi_set", "tcpstore_barrier"), "muster_tcpstore"),
        **dict.fromkeys(("python_calls", "python_barrier", "python_import", "vllm_group",
                         "init_process_group"), "muster")}
SEALED = ", TLS"  # behind the name of a subject
# By which they are compared.
COMPARED = {"synchronize_value": "alone_p50_us", "all_reduce": "round_us", "gather": "wall_ms",
            "start_ranks": "reported_ms", "restart_ranks": "again_ms",
            "idle_ranks": "cpu_s_per_hour",
            "encrypted_operations": "server_us", "encrypted_barrier": "wall_ms",
            "encrypted_start": "wall_ms", "encrypted_records": "read_ns",
            "encrypted_memory": "bytes_per_connection",
            "encrypted_strangers": "p99_us", "encrypted_reconnect": "wall_ms",
            "tcpstore_operations": "server_us", "tcpstore_wake_ups": "last_us",
            "tcpstore_storm": "wall_ms", "tcpstore_multi_set": "wall_ms",
            "tcpstore_barrier": "wall_ms",
            "python_calls": "processor_us", "python_barrier": "processor_us",
            "python_import": "wall_ms", "vllm_group": "wall_us",
            "init_process_group": "wall_ms"}


def bytes_text(count):
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            return f"{number(count / (1 << power))} {unit}"
    return f"{count} B"


def given(row):
    def text(name, value):
        if isinstance(value, str):
            return value
        return bytes_text(value) if name == "bytes" else number(value)
    return [text(name, value) for name, value in row.parameters.items()]


def cases(figures, question):
    """The rows of each case, by subject."""
    found = {}
    for row in figures.of(question):
        found.setdefault(tuple(row.parameters.items()), {})[row.subject] = row
    return list(found.values())


def times(ours, other, name):
    return f"{other.median(name) / ours.median(name):.2f}" if ours and other else "–"


def table_by_case(figures, question):
    """A line for each case, with the compared value of each subject, and its processor time."""
    subjects = union([row.subject] for row in figures.of(question))
    ours, compared = OURS[question], COMPARED[question]
    others = [name for name in subjects if name != ours]
    heads = (list(figures.of(question)[0].parameters) + [f"{name}, µs" for name in subjects]
             + [f"{name} / {ours}" for name in others]
             + [f"{name}, CPU µs" for name in subjects])
    lines = []
    for rows in cases(figures, question):
        def cell(subject, name, rows=rows):
            return number(rows[subject].median(name)) if subject in rows else "–"
        lines.append(given(next(iter(rows.values())))
                     + [cell(subject, compared) for subject in subjects]
                     + [times(rows.get(ours), rows.get(name), compared) for name in others]
                     + [cell(subject, "cpu_us") for subject in subjects])
    return table(heads, lines)


def table_by_row(figures, question):
    """A line for each case and subject. With TLS, beside the same subject without it."""
    ours, compared = OURS[question], COMPARED[question]
    columns = COLUMNS[question]
    of_compared = next(head for name, head in columns if name == compared)
    heads = (list(figures.of(question)[0].parameters) + ["by"] + [head for _, head in columns]
             + [f"{of_compared}, against {ours}"])
    lines = [given(row) + [row.subject] + [number(row.median(name)) for name, _ in columns]
             + [times(rows.get(ours), row, compared)]
             for rows in cases(figures, question) for row in rows.values()]
    if any(row.subject.endswith(SEALED) for row in figures.of(question)):
        heads.append("against the same in clear")
        in_clear = [times(rows.get(row.subject.removesuffix(SEALED)), row, compared)
                    if row.subject.endswith(SEALED) else ""
                    for rows in cases(figures, question) for row in rows.values()]
        lines = [[*line, cell] for line, cell in zip(lines, in_clear)]
    return table(heads, lines)


def markdown(figures):
    machine = figures.machine
    title, command, programs = PAGES[figures.page]
    yield "# " + title
    yield ""
    yield (f"Made by `{command}` ({figures.extent}), {machine['date']}. {programs} The programs "
           "take turns, each time with new processes; a figure is the median of all turns. "
           "[README.md](README.md) says more.")
    yield ""
    minutes = sum(figures.seconds.values()) / 60
    yield from table(["machine", ""], [[name.replace("_", " "), str(value)]
                                       for name, value in machine.items() if name != "date"]
                     + [[name, version] for name, version in figures.programs.items()]
                     + [["the run took", f"{minutes:.1f} min"]])
    if float(machine["load_at_start"]) > LOAD_MAX:
        yield ""
        yield ("**Something else was at work when this began, or had just been.** If it went on, "
               "times are longer than they should be.")
    if figures.verdicts():
        yield ""
        yield "## Targets"
        yield ""
        yield from table(["what", "target", "measured", "met"],
                         [[one.what, one.target, one.measured, "yes" if one.is_met else "**no**"]
                          for one in figures.verdicts()])
    for question in figures.questions():
        yield ""
        yield f"## {TITLES[question]}"
        yield ""
        yield from NOTES[question]
        yield ""
        yield from (table_by_row if question in COLUMNS else table_by_case)(figures, question)
    if figures.not_measured:
        yield ""
        yield "## Not measured"
        yield ""
        yield from table(["question", "why"],
                         [[one["question"], one["why"]] for one in figures.not_measured])


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    of_summary = summary(read(sys.argv[1]))
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    figures = Figures(of_summary)
    page = "\n".join(markdown(figures)) + "\n"
    (folder / f"{figures.page}.md").write_text(page, encoding="utf-8")
    (folder / f"{figures.page}.json").write_text(text_of(of_summary), encoding="utf-8")
    for one in figures.verdicts():
        print(f"{'met ' if one.is_met else 'MISSED'}  {one.what}: {one.measured}, "
              f"target {one.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
