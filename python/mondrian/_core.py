"""Attributes forwarded to the core object of a Python object."""

from __future__ import annotations


def made_by_core(thing, kinds, maker):
    """The core object. Some classes cannot be constructed directly; their constructors raise an error."""
    if not isinstance(thing, kinds):
        raise TypeError(f"this cannot be constructed directly: it is made by {maker}")
    return thing


def of_core(name, doc):
    """A property of ``_inner``."""
    return property(lambda self: getattr(self._inner, name), doc=doc)
