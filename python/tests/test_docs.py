"""The pages' code runs, and the glossary names what there is."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import mondrian
from mondrian import process

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the pages lie beside the source")


def blocks(page, language="python"):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    assert len(blocks("docs/python.md")) >= 3
    for code in blocks("docs/python.md"):
        exec(compile(code, "docs/python.md", "exec"), names)
    assert names["best"].score(names["X"][200:], names["y"][200:]) > 0.8


def test_the_code_of_the_readme_runs():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 2]
    names = {"X": X[:120], "y": y[:120], "X_val": X[120:160], "y_val": y[120:160], "X_new": X[160:]}
    (code,) = blocks("README.md")
    exec(compile(code, "README.md", "exec"), names)
    assert names["mean"].shape == names["std"].shape == (40,)
    assert names["simple"].lifetime_ <= names["forest"].lifetime_


def glossary():
    """The names in the second and third column."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    rows = [line.strip().strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if len(row) == 3 and not set(row[0]) <= set("- ") and row[1].strip() != "Rust"]
    return [[re.findall(r"`([^`]+)`", column) for column in row[1:]] for row in rows]


def public_names():
    """Everything that a user can write: classes, functions, parameters, methods."""
    names = {"process"}
    for module, listed in ((mondrian, mondrian.__all__), (process, ("sample", "poisson", "Partition", "InfiniteMondrian"))):
        for name in listed:
            thing = getattr(module, name)
            names.add(name)
            if callable(thing):
                names |= set(inspect.signature(thing).parameters)
            if inspect.isclass(thing):
                ours = [parent for parent in thing.__mro__ if parent.__module__.startswith("mondrian")]
                names |= {member for parent in ours for member in vars(parent)}
                for member in {member for parent in ours for member in vars(parent) if not member.startswith("_")}:
                    if inspect.isfunction(getattr(thing, member)):
                        names |= set(inspect.signature(getattr(thing, member)).parameters)
                names |= set(re.findall(r"^    (\w+_) :", thing.__doc__ or "", flags=re.M))
    return {name for name in names if not name.startswith("_")}


def test_the_glossary_names_what_python_has():
    known = public_names() | {"mondrian"}
    for _, python in glossary():
        for name in python:
            assert set(name.split(".")) <= known, name


def test_the_glossary_names_what_rust_has():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "crates/mondrian/src").rglob("*.rs"))
    declared = set(re.findall(r"\b(?:fn|struct|enum|trait|type|mod)\s+(\w+)", source))
    declared |= set(re.findall(r"^\s*pub (\w+):", source, flags=re.M)) | {"rayon"}
    for rust, _ in glossary():
        for name in rust:
            assert set(name.split("::")) <= declared, name


def test_everything_public_is_in_the_glossary():
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    written = set(re.findall(r"\w+", text))
    parts = {"process", "X", "y", "X_val", "y_val", "X_query", "ax", "path", "sample_weight", "classes", "indices", "names", "n_points",
             "dims", "axes", "paint", "times", "time", "other", "target", "coverage", "quantiles", "n_samples", "loss", "a", "b",
             "intensity"}  # fmt: skip
    estimators = [getattr(mondrian, name) for name in mondrian.__all__ if inspect.isclass(getattr(mondrian, name))]
    for cls in [*estimators, process.Partition, process.InfiniteMondrian]:
        needed = set(inspect.signature(cls).parameters) if hasattr(cls, "get_params") else set()
        ours = [parent for parent in cls.__mro__ if parent.__module__.startswith("mondrian")]
        needed |= {member for parent in ours for member in vars(parent) if not member.startswith(("_", "set_"))}
        assert needed - written - parts == set(), cls.__name__
