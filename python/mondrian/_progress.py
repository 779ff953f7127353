"""Progress of long calls."""

from __future__ import annotations

import math


class _Printer:
    """Prints the share of work done, at most once for every tenth."""

    def __init__(self, name):
        self._name, self._next = name, 0.1

    def __call__(self, share):
        if share >= self._next:
            print(f"{self._name}: {share:.0%}", flush=True)
            self._next = math.floor(10 * share + 1) / 10


def _print_step(step):
    print(f"rows {step['rows']}, error {step['error']:.6g}, alpha {step['alpha']:.3g}", flush=True)


def listener_of(verbose, name):
    """The progress callback for ``verbose``: a callable as it is, a printer for True, otherwise None."""
    if callable(verbose):
        return verbose
    return _Printer(name) if verbose else None


def step_listener_of(verbose):
    """The same for a search, which reports its evaluations."""
    if callable(verbose):
        return verbose
    return _print_step if verbose else None
