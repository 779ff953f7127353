"""The program ``mondrian``, where it has been built beside the package."""

import json
import os
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
_BUILT = [path for path in (_TARGET / "debug" / "mondrian", _TARGET / "release" / "mondrian") if path.exists()]
#: The newest one built, or the one that MONDRIAN_PROGRAM names.
PATH = os.environ.get("MONDRIAN_PROGRAM") or max(_BUILT, key=lambda path: path.stat().st_mtime, default=None)

needed = pytest.mark.skipif(PATH is None, reason="the program is not built: cargo build -p mondrian-cli")


def run(*arguments, code=0):
    """What the program says as JSON; its message on standard error if it is to fail."""
    done = subprocess.run([PATH, "--json", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)
