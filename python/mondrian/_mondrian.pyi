"""The binding of the Rust library. Private: use the estimators."""

from typing import Any

__version__: str

def poisson(a: float, b: float, intensity: float, seed: int, data: list[float] | None) -> tuple[Any, Any]: ...
def __getattr__(name: str) -> Any: ...
