"""Figures of others that are quoted, not measured: what, how much, and who says so."""

BY_THE_SAME_METHOD = ("measured once by the same method, with the wheel of PyTorch 2.6, on a "
                      "two-core virtual machine")

# Whole starts of jobs: who, ranks, how long, and its seconds in a plot.
CITED_STARTS = [
    ("MegaScale, before", 2048, "1,047 s", 1047),
    ("MegaScale, with another store and barriers of O(N)", 2048, "under 5 s", 5),
    ("TCPStore with poll", 96_000, "over 30 min", 1800),
    ("NCCL", 96_000, "about 265 s", 265),
    ("TCPStore with libuv", 96_000, "100 s", 100),
    ("NCCLX", 96_000, "up to 11 times as fast as NCCL", 265 / 11),
]

CITED = [
    ("TCPStore 2.6 with libuv: server CPU of a set, get, add; 64 connections, two cores",
     "6.0, 6.3, 5.5 µs, where the echo server took 4.2", BY_THE_SAME_METHOD),
    ("TCPStore 2.6 with libuv: server CPU of a multi-get of 64 keys, and with the wait before it",
     "12, 23 µs", BY_THE_SAME_METHOD),
    ("etcd 3.4 through its HTTP gateway: CPU of a put, a get; one core", "130, 226 µs",
     "measured once by the same method, on a two-core virtual machine"),
    ("TCPStore 2.6 with libuv: last wake-up of 1,024 waiters, without and with the value",
     "5.3 ms, 14.6 ms", BY_THE_SAME_METHOD),
    ("TCPStore 2.6 with libuv, and with poll: storm of 4,096 connections", "114 ms, 1.63 s",
     BY_THE_SAME_METHOD),
    ("TCPStore with libuv, start of 96,000 ranks", "100 s; before, with poll, over 30 min",
     "PyTorch, tutorial on TCPStore's libuv backend (pytorch/tutorials #2966)"),
    ("MegaScale, initialization of groups on 2,048 GPUs", "1,047 s, then under 5 s",
     "ByteDance, arXiv 2402.15627, section 3.5: TCPStore replaced by a store that does not block, "
     "barriers of O(N²) by O(N)"),
    ("NCCLX against NCCL, start of 96,000 ranks", "up to 11 times as fast as about 265 s",
     "Meta, arXiv 2510.20171"),
]
