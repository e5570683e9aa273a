"""Prints what sampler_test.cpp holds of torch's shuffled orders, by the torch that is installed.

torch_order.py   takes 5 GB of memory and a minute. Newer torch draws 64 bits for an element, and
                 no longer 32, from the last of these counts on; 1.13 does not.
"""

import torch

COUNTS = [1_000, 214_748_363, 214_748_364]
SEED = 7


def main():
    print(f"torch {torch.__version__}")
    for count in COUNTS:
        generator = torch.Generator()
        generator.manual_seed(SEED)
        order = torch.randperm(count, generator=generator)
        # Of 64 bits, as it wraps.
        checksum = int((order * torch.arange(1, count + 1)).sum()) % (1 << 64)
        first = ", ".join(str(int(element)) for element in order[:8])
        print(f"    {{{count}, {{{first}}}, {checksum}u}},")


main()
