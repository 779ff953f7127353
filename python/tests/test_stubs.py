"""The types that are told to type checkers are those of the package."""

import ast
import inspect
import re
from pathlib import Path

import estimators
import pytest
from test_family import small, target

import mondrian

FOLDER = Path(mondrian.__file__).parent
STUBS = {"__init__.pyi": mondrian, "process.pyi": mondrian.process}


class Stub:
    """What a stub says: functions with their parameters, classes with methods, properties and attributes."""

    def __init__(self, name):
        self.functions, self.methods, self.properties, self.attributes = {}, {}, {}, {}
        for node in ast.parse((FOLDER / name).read_text()).body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = parameters(node)
            if isinstance(node, ast.ClassDef):
                self._read(node)

    def _read(self, node):
        bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in self.methods]
        for table in (self.methods, self.properties, self.attributes):
            table[node.name] = {}
            for base in reversed(bases):
                table[node.name] |= table[base]
        for item in node.body:
            if isinstance(item, ast.AnnAssign):
                self.attributes[node.name][item.target.id] = ast.unparse(item.annotation)
            elif isinstance(item, ast.FunctionDef):
                words = {decorator.id for decorator in item.decorator_list}
                if "property" in words:
                    self.properties[node.name][item.name] = True
                elif "overload" not in words or item.name not in own(node, item):
                    self.methods[node.name][item.name] = parameters(item)


def own(node, item):
    """Names of the methods before this one in a class: of several signatures the first one counts."""
    return {earlier.name for earlier in node.body if isinstance(earlier, ast.FunctionDef) and earlier.lineno < item.lineno}


def parameters(function):
    """Names, whether by name only, and defaults, which `...` leaves open."""
    found, given = [], function.args
    plain = given.posonlyargs + given.args
    defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults
    for argument, default in [*zip(plain, defaults), *zip(given.kwonlyargs, given.kw_defaults)]:
        value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
        found.append((argument.arg, argument in given.kwonlyargs, value))
    return found


def actual(function):
    signature = inspect.signature(function).parameters.values()
    return [(one.name, one.kind is inspect.Parameter.KEYWORD_ONLY, one.default) for one in signature]


def same(stub, runtime):
    if [one[:2] for one in stub] != [one[:2] for one in runtime]:
        return False
    return all(a is ... or (type(a) is type(b) and a == b) or a is b for (*_, a), (*_, b) in zip(stub, runtime))


def public(module):
    """Our classes, by name."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: cls for name, cls in found.items() if inspect.isclass(cls)}


@pytest.mark.parametrize("name", STUBS)
def test_every_class_method_parameter_and_default(name):
    stub, module = Stub(name), STUBS[name]
    assert public(module).keys() == {cls for cls in stub.methods if not cls.startswith("_")}
    for title, cls in public(module).items():
        ours = {member for parent in cls.__mro__ if parent.__module__.startswith("mondrian") for member in vars(parent)}
        ours = {member for member in ours if not member.startswith("_")} | {"__init__"}
        methods = {member for member in ours if callable(getattr(cls, member))}
        for method in methods:
            assert method in stub.methods[title], f"{title}.{method} is not in {name}"
            assert same(stub.methods[title][method], actual(getattr(cls, method))), f"{title}.{method}"
        properties = {member for member in ours if isinstance(inspect.getattr_static(cls, member), property)}
        assert properties == stub.properties[title].keys(), title
        said = {member for member in stub.methods[title] if not member.startswith("__")}
        assert all(callable(getattr(cls, member)) for member in said), title


@pytest.mark.parametrize("name", STUBS)
def test_every_function(name):
    functions = {word: thing for word, thing in vars(STUBS[name]).items() if word in STUBS[name].__all__ and inspect.isfunction(thing)}
    stubs = Stub(name).functions
    assert functions.keys() == stubs.keys()
    assert all(same(stubs[word], actual(function)) for word, function in functions.items())
    listed = re.search(r"^__all__ = (\[.*?\])", (FOLDER / name).read_text(), flags=re.M | re.S)
    assert ast.literal_eval(listed[1]) == STUBS[name].__all__


@pytest.mark.parametrize("cls", estimators.ALL)
def test_every_attribute_is_typed_documented_and_there(cls, rng):
    stub = Stub("__init__.pyi")
    X = rng.uniform(size=(30, 2))
    model = small(cls).fit(X, target(cls, X))
    section = re.search(r"Attributes\n    -+\n(.*?)\n\n", cls.__doc__, flags=re.S)[1]
    documented = {name for line in re.findall(r"^    ([\w, ]+) :", section, flags=re.M) for name in line.split(", ")}
    typed = stub.attributes[cls.__name__].keys()
    assert typed == documented
    assert all(hasattr(model, name) for name in typed | stub.properties[cls.__name__].keys())
    learned = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert learned <= typed


def test_attributes_of_paths_and_trajectories(regression):
    X, y = regression
    stub = Stub("__init__.pyi")
    path = small(mondrian.MondrianForestRegressor).fit(X, y).path(X, y)
    trajectory = mondrian.LaplaceKernelRidge(random_state=0).fit(X, y).trajectory_
    for thing in (path, trajectory):
        public_names = {name for name in vars(thing) if not name.startswith("_")}
        assert public_names == stub.attributes[type(thing).__name__].keys()
