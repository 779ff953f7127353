"""The types that are told to type checkers are those of the package."""

import ast
import inspect
from pathlib import Path

import pytest

import mondrian

FOLDER = Path(mondrian.__file__).parent


def classes(name):
    """Methods and their parameters of each class in a stub, inherited ones included."""
    found = {}
    for node in ast.parse((FOLDER / name).read_text()).body:
        if isinstance(node, ast.ClassDef):
            methods = {}
            for base in node.bases:
                methods |= found.get(getattr(base, "id", None), {})
            methods |= {item.name: parameters(item) for item in node.body if isinstance(item, ast.FunctionDef)}
            found[node.name] = methods
    return found


def parameters(function):
    arguments = function.args
    return [argument.arg for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]


@pytest.mark.parametrize(("stub", "module"), [("__init__.pyi", mondrian), ("process.pyi", mondrian.process)])
def test_stubs_name_every_method_and_parameter(stub, module):
    stubs = classes(stub)
    public = {name: cls for name, cls in vars(module).items() if inspect.isclass(cls) and cls.__module__.startswith("mondrian") and not name.startswith("_")}
    assert public.keys() == {name for name in stubs if not name.startswith("_")}
    for name, cls in public.items():
        ours = [member for parent in cls.__mro__ if parent.__module__.startswith("mondrian") for member in vars(parent)]
        methods = {member for member in ours if not member.startswith(("_", "set_")) and callable(getattr(cls, member))}
        for method in methods | ({"__init__"} if hasattr(cls, "get_params") else set()):
            assert method in stubs[name], f"{name}.{method} is not in {stub}"
            actual = list(inspect.signature(getattr(cls, method)).parameters)
            assert stubs[name][method] == actual, f"{name}.{method}"


def test_stubs_name_every_function():
    tree = ast.parse((FOLDER / "__init__.pyi").read_text())
    functions = {node.name: parameters(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions == {"load": list(inspect.signature(mondrian.load).parameters)}
