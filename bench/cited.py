"""Figures of others that are quoted, not measured: what, how much, and who says so."""

CITED = [
    ("TCPStore with libuv, start of 96,000 ranks", "100 s; before, with poll, over 30 min",
     "PyTorch, tutorial on TCPStore's libuv backend (pytorch/tutorials #2966)"),
    ("MegaScale, initialization of groups on 2,048 GPUs", "1,047 s, then under 5 s",
     "ByteDance, arXiv 2402.15627, section 3.5: TCPStore replaced by a store that does not block, "
     "barriers of O(N²) by O(N)"),
    ("NCCLX against NCCL, start of 96,000 ranks", "up to 11 times as fast as about 265 s",
     "Meta, arXiv 2510.20171"),
]
