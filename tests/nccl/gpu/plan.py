"""What is looked at on a GPU: the ten checks, part by part, and what is measured."""

MIB = 1 << 20
MODES = ("nonblocking", "blocking")
OPERATIONS = ("all_reduce", "broadcast", "send_recv")

CHECKS = {
    1: "the device that NCCL uses is the one that Muster makes current",
    2: "very many small calls are sound; their host time",
    3: "a refusal, or an exception in `grouped`, ends what does not block",
    4: "an abort frees a stream in which a kernel waits",
    5: "several communicators of a device are aborted together",
    6: "a peer that is killed",
    7: "first collectives in a ring of groups",
    8: "close where something is in the way",
    9: "what communicators cost, and what failed attempts leave",
    10: "calls are captured into graphs",
}


class Part:
    """One claim of a check, which some processes look at together.

    function     what the ranks do: of parts.h
    must         what must hold
    seconds      for what is repeated inside; starting and ending take more
    settings     of the ranks; `small`: others, on doubles
    repeat       so often new processes do it, in `seconds` all together
    dies         the ranks that are killed
    devices      so many are needed
    on_devices   so many are used, if there are more; 0: all
    """

    def __init__(self, check, function, must, mode="nonblocking", *, ranks=2, seconds=30,
                 settings=None, small=None, environment=None, repeat=1, dies=(), devices=1,
                 on_devices=0, variant=""):
        self.check = check
        self.function = function
        self.must = must
        self.mode = mode
        self.ranks = ranks
        self.seconds = seconds
        self.settings = settings or {}
        self.small = small or {}
        self.environment = environment or {}
        self.repeat = repeat
        self.dies = dies
        self.devices = devices
        self.on_devices = on_devices
        self.how = ", ".join(filter(None, (
            f"{ranks} rank{'s' if ranks > 1 else ''}",
            "blocking" if mode == "blocking" else "non-blocking", variant)))
        self.key = f"{check} {function}, {self.how}"


def in_both_modes(check, function, must, **how):
    """`must` has the mode's own text where they differ."""
    for mode in MODES:
        yield Part(check, function, must[mode] if isinstance(must, dict) else must, mode, **how)


def devices_and_calls():
    yield Part(1, "device_of_thread", "a communicator made in a thread without a context is on its "
               "device, and the thread's and another one's contexts stay as they were", ranks=1)
    yield Part(1, "second_device", "with device 0 current, a communicator of device 1 is there, "
               "and takes no memory of device 0", ranks=1, devices=2)
    for ranks in (1, 2):
        yield from in_both_modes(2, "many_calls", "100,000 `all_reduce` of 8 bytes: none fails, "
                                 "all sums are right", ranks=ranks, seconds=80,
                                 settings={"calls": 100_000}, small={"calls": 300})
    checked = {"NCCL_CHECK_POINTERS": "1"}
    yield from in_both_modes(3, "refusal_bare", {
        "nonblocking": "NCCL alone keeps a refusal for the communicator's error, for good",
        "blocking": "NCCL alone forgets a refusal; a right call works"}, environment=checked)
    yield from in_both_modes(3, "refusal", {
        "nonblocking": "the communicator ends with what NCCL said",
        "blocking": "the call fails with what NCCL said, and the communicator goes on"},
        environment=checked)
    yield from in_both_modes(3, "throw_in_group", {
        "nonblocking": "nothing of the group is issued; the communicator ends if NCCL had taken a "
                       "call",
        "blocking": "nothing of the group is issued, and the communicator goes on"})


def aborts_and_losses():
    yield from in_both_modes(4, "abort_frees_stream", "the stream is idle within 1 s, 100 times",
                             seconds=180, settings={"bytes": 256 * MIB, "times": 100,
                                                    "limit_ms": 1000},
                             small={"bytes": MIB, "times": 3, "limit_ms": 5000})
    yield from in_both_modes(5, "abort_together", "2 to 8 communicators, whose kernels wait, are "
                             "aborted at once: all streams become idle, no handle is given up",
                             seconds=120, settings={"bytes": 4 * MIB, "communicators": 8},
                             small={"bytes": MIB, "communicators": 3})
    # By sockets also where there are several GPUs: over faster links all would be over too soon.
    killed = {"repeat": 50, "seconds": 180, "dies": (1,), "on_devices": 1,
              "settings": {"bytes": 1024 * MIB, "queued": 4, "delay_ms": 50, "listen_ms": 5000},
              "small": {"bytes": 8 * MIB, "queued": 24, "delay_ms": 5, "listen_ms": 500,
                        "repeat": 2}}
    yield from in_both_modes(6, "killed_peer", "`error()` says `rank_lost` with the rank, and the "
                             "stream is idle soon; 50 times", **killed)
    yield Part(6, "killed_peer_of_nccl", "with `OnLoss::notify` the host is told, whatever NCCL "
               "says; 20 times", **{**killed, "repeat": 20, "seconds": 100})


def rings_and_ends():
    for warm_up in (0, 1):
        must = ("with a warm-up all collectives are done" if warm_up else
                "without a warm-up the first collectives wait for each other, until their deadline")
        yield from in_both_modes(7, "ring", must, ranks=3,
                                 settings={"warm_up": warm_up, "deadline_ms": 20_000 if warm_up else
                                           5000},
                                 small={} if warm_up else {"deadline_ms": 1000},
                                 variant="warm-up" if warm_up else "no warm-up")
    large = {"settings": {"bytes": 1024 * MIB, "queued": 4, "deadline_ms": 3000},
             "small": {"bytes": 4 * MIB, "deadline_ms": 500}}
    yield from in_both_modes(8, "close_with_work", "`close` with `all_reduce` of 1 GiB queued ends "
                             "within its deadline", **large)
    yield from in_both_modes(8, "close_unmatched", "`close` under a kernel that waits ends at its "
                             "deadline; then others have their turns on the device", **large)
    yield from in_both_modes(8, "close_with_graph", "`close` while a graph holds an `all_reduce` "
                             "of it ends within its deadline, and blocks nobody",
                             settings={"deadline_ms": 5000})
    yield from in_both_modes(8, "close_after_regroup", "`close` of the old communicator returns at "
                             "once; the new one's ends with 1 GiB queued", ranks=3, **large)


def costs_and_graphs():
    yield from in_both_modes(9, "cycles", "100 communicators, one after the other, leave neither "
                             "threads nor descriptors, nor more memory than NCCL alone does",
                             seconds=120, settings={"times": 100}, small={"times": 5})
    yield Part(9, "cycles_bare", "the same of NCCL alone: what is its own part",
               seconds=60, settings={"times": 100}, small={"times": 5})
    yield Part(9, "many_alive", "24 communicators work at once", seconds=120,
               settings={"communicators": 24}, small={"communicators": 4})
    yield from in_both_modes(9, "failed_attempts", "8 attempts that fail inside NCCL leave each at "
                             "most 2 threads, 8 descriptors, 4 MiB of the host's memory and 16 MiB "
                             "of the device's; then `create` is refused, until "
                             "`forgive_attempts`")
    for capture in ("global", "thread_local", "relaxed"):
        for by in ("all_reduce", "with_native"):
            yield from in_both_modes(10, "capture", "captured once, replayed 1,000 times with "
                                     "right sums", seconds=20,
                                     settings={"capture": capture, "by": by, "times": 1000},
                                     small={"times": 200}, variant=f"{capture}, `{by}`")


PARTS = [*devices_and_calls(), *aborts_and_losses(), *rings_and_ends(), *costs_and_graphs()]

BANDWIDTH = {operation: Part(0, "bandwidth", operation, seconds=140,
                             settings={"operation": operation, "bytes": 1024 * MIB, "rounds": 7},
                             small={"bytes": 64 << 10, "rounds": 3})
             for operation in OPERATIONS}
BANDWIDTH_BYTES = [1024 * 4 ** power for power in range(11)]
SUBJECTS = ("nccl", "nonblocking", "blocking")
