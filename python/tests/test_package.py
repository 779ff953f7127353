"""What is installed: types, licences, metadata, and no word that only a source checkout has."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import mondrian

FOLDER = Path(mondrian.__file__).parent


def test_the_package_is_typed_and_bound_to_the_stable_interface():
    assert (FOLDER / "py.typed").exists()
    assert {path.name for path in FOLDER.glob("*.pyi")} == {"__init__.pyi", "process.pyi", "_mondrian.pyi"}
    assert Path(mondrian._mondrian.__file__).name in ("_mondrian.abi3.so", "_mondrian.pyd")


def test_metadata_says_licence_versions_and_needs():
    metadata = importlib.metadata.metadata("mondrian")
    assert metadata["Version"] == mondrian.__version__
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert sorted(metadata.get_all("License-File")) == ["LICENSE-APACHE", "LICENSE-MIT"]
    assert "Typing :: Typed" in metadata.get_all("Classifier") and metadata["Requires-Python"] == ">=3.11"
    needed = [need for need in importlib.metadata.requires("mondrian") if "extra" not in need]
    assert sorted(need.split(">")[0] for need in needed) == ["numpy", "scikit-learn", "scipy"]


def test_everything_listed_is_there_and_documented():
    for module in (mondrian, mondrian.process):
        for name in module.__all__:
            assert getattr(module, name) is not None and (name == "__version__" or getattr(module, name).__doc__)


def test_it_imports_without_docstrings_and_without_optional_companions():
    script = """
import sys
for name in ("matplotlib", "pandas", "polars", "pyarrow"):
    sys.modules[name] = None
import mondrian
model = mondrian.MondrianForestRegressor(5, lifetime=2.0, random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
path = model.path([[0.5]], [0.5])
for call, word in ((path.plot, "matplotlib"), (path.to_frame, "pandas")):
    try:
        call()
    except ImportError as error:
        said = str(error)
    else:
        said = "nothing"
    if word not in said:  # No assert: -OO removes them.
        raise SystemExit(f"{word} is missing, and plot or to_frame says {said}")
"""
    done = subprocess.run([sys.executable, "-OO", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
