"""Attributes that the core's object behind one of ours knows."""

from __future__ import annotations


def made_by_core(thing, kinds, maker):
    """The core object. Some classes cannot be constructed directly, and raise an error that says so."""
    if not isinstance(thing, kinds):
        raise TypeError(f"this is made by {maker}, not by hand")
    return thing


def of_core(name, doc):
    """A property of ``_inner``."""
    return property(lambda self: getattr(self._inner, name), doc=doc)
