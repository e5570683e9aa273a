"""A rank of a group: rank.py ADDRESS NAMESPACE GROUP RANK WORLD_SIZE.

It joins, and says so. Each line of its standard input is a call, `barrier TIMEOUT_S`, `regroup` or
`leave`, that it makes; it prints what came of it. At the end of its input it leaves in order.
"""

import sys

import muster


def main() -> None:
    address, namespace, name, rank, world_size = sys.argv[1:]
    with muster.Store(address, namespace=namespace) as store:
        group = muster.StatelessProcessGroup(store, name, int(rank), world_size=int(world_size))
        print("joined", flush=True)
        for line in sys.stdin:
            call, *timeout = line.split()
            try:
                if call == "barrier":
                    group.barrier(timeout=float(timeout[0]))
                elif call == "regroup":
                    group.regroup()
                elif call == "leave":
                    group.leave()
                print("ok", flush=True)
            except muster.MusterError as error:
                print(error.code, flush=True)


main()
