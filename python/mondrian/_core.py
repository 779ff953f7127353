"""Attributes that the core's object behind one of ours knows."""

from __future__ import annotations


def of_core(name, doc):
    """A property that asks ``_inner``."""
    return property(lambda self: getattr(self._inner, name), doc=doc)
