"""Settings of the whole process: the memory limit."""

from __future__ import annotations

import os
import re
from numbers import Real

from ._mondrian import max_memory, set_max_memory

# Share of the memory that is free when the package is imported.
_SHARE = 0.8
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def _bytes(size):
    """Bytes of a number or of text such as "8 GB"."""
    if isinstance(size, Real) and not isinstance(size, bool):
        value = float(size)
    else:
        found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]i?)?b?\s*", str(size), re.IGNORECASE)
        try:
            value = float(found[1]) * _UNITS[(found[2] or "").lower()]
        except (TypeError, ValueError):
            raise ValueError(f'max_memory is {size!r}, but must be a number of bytes or a size such as "8 GB"') from None
    if not 0 < value < 2**63:
        raise ValueError(f"max_memory is {size!r}, but must be above 0 bytes")
    return int(value)


def _free():
    """Bytes that this process may still allocate, or None if the system does not report it."""
    free = []
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            free += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        try:
            free.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
        except (AttributeError, OSError, ValueError):
            pass
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            free.append(soft)
    except (ImportError, OSError, ValueError):
        pass
    return min(free, default=None)


def set_config(*, max_memory="auto"):
    """Set the configuration of the whole process.

    Parameters
    ----------
    max_memory : "auto", int, str or None
        Memory limit of one matrix or table of a computation: bytes, or text such as ``"8 GB"`` or ``"512 MiB"``; None
        for no limit. ``"auto"``, the default, is four fifths of the free memory. A computation that needs more uses
        another algorithm if there is one (another solver, another form of a path), else it raises MemoryError.
    """
    if max_memory == "auto":
        free = _free()
        set_max_memory(None if free is None else int(_SHARE * free))
    else:
        set_max_memory(None if max_memory is None else _bytes(max_memory))


def get_config():
    """The configuration of the whole process: a dict with ``max_memory`` in bytes, or None for no limit."""
    return {"max_memory": max_memory()}
