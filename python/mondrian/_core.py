"""Attributes that the core's object behind one of ours knows."""

from __future__ import annotations


def made_by_core(thing, kinds, maker):
    """The thing itself. Some classes are made by others only, and say so when they are called."""
    if not isinstance(thing, kinds):
        raise TypeError(f"this is made by {maker}, not by hand")
    return thing


def of_core(name, doc):
    """A property that asks ``_inner``."""
    return property(lambda self: getattr(self._inner, name), doc=doc)
