"""torchrun that knows ``--rdzv-backend muster``, for versions of torch without entry points.

    python -m muster.torch.run --rdzv_backend muster --rdzv_endpoint HOST:PORT ... SCRIPT

All arguments are torchrun's. From torch 2.5 on ``torchrun`` itself finds the backend.
"""

from torch.distributed.run import main as torchrun

from muster.torch.rendezvous import register


def main() -> None:
    """Runs torchrun with this process's arguments."""
    register()
    torchrun()


if __name__ == "__main__":
    main()
