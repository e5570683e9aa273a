"""Classes with the names and signatures of others', for programs that were written for those.

:mod:`muster.compat.vllm` has vLLM's ``StatelessProcessGroup``. Nothing else of Muster imports what
is here.
"""
