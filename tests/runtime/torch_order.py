"""Prints the shuffled orders of the installed torch, for sampler_test.cpp.

torch_order.py   takes 5 GB of memory and a minute. Before torch 2.6 the last line is another.
"""

import torch

# The number of elements, and of ranks.
CASES = [(1_000, 1), (214_748_363, 16), (214_748_364, 16)]
SEED = 7
RANK = 0


def main():
    print(f"torch {torch.__version__}")
    for count, ranks in CASES:
        generator = torch.Generator()
        generator.manual_seed(SEED)
        elements = torch.randperm(count, generator=generator)
        # torch's DistributedSampler takes elements from the beginning until the ranks are even.
        elements = torch.cat([elements, elements[: -count % ranks]])[RANK::ranks]
        # Of 64 bits, as it wraps.
        checksum = int((elements * torch.arange(1, len(elements) + 1)).sum()) % (1 << 64)
        first = ", ".join(str(int(element)) for element in elements[:8])
        print(f"    {{{count}, {ranks}, {{{first}}}, {checksum}u}},")


main()
