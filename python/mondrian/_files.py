"""Model files: one format for Python, the program and Rust (``docs/model-format.md``)."""

from __future__ import annotations

import contextlib
import json
import math
import numbers
import os
import tempfile

import numpy as np

from . import _mondrian
from . import _parameters as parameters
from ._preparation import Preparation

#: The notes of the two front ends in a file's metadata.
_PYTHON, _PROGRAM = "params:python", "params:program"

#: Kinds of models that the program can use.
_PROGRAM_KINDS = {
    "MondrianForestRegressor",
    "MondrianForestClassifier",
    "MondrianDensity",
    "LaplaceKernelRidge",
    "LaplaceKernelClassifier",
    "MondrianKernelRidge",
    "MondrianGridRidge",
}


def load(path, n_jobs=None):
    """Open a model file written by ``save``, the program ``mondrian`` or the Rust library.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_jobs : int or None, default=None
        Threads that grow the trees again, in joblib's meaning, at most one per core.

    Returns
    -------
    estimator : estimator
        A fitted estimator of the kind in the file. If it was fitted by the program, the estimator takes the columns of
        the program's table, as a frame or as an array in their order, and scales and encodes them like the program;
        ``preparation_`` describes this. Its ``fit`` discards the model and the preparation.

    Raises
    ------
    ValueError
        If the file is not a model, is damaged, or was written by a later version.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import mondrian
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> forest = mondrian.MondrianForestRegressor(random_state=0).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     forest.save(os.path.join(folder, "model.mondrian"))
    ...     again = mondrian.load(os.path.join(folder, "model.mondrian"))
    >>> bool((again.predict(X) == forest.predict(X)).all())
    True
    """
    from . import _kinds

    # A number would be a file descriptor, which would be closed here.
    with open(os.fspath(path), "rb") as file:
        data = file.read()
    model, kind, metadata = _mondrian.read_model(data, parameters.threads_of(n_jobs))
    try:
        return _estimator(_kinds.class_of(kind, metadata.get(_PYTHON)), _kinds.params_of(kind, metadata), model, metadata)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the notes in the model file cannot be read: {error!r}") from error


def _estimator(cls, params, model, metadata):
    """The estimator of a core model, with the notes of the front ends."""
    note = json.loads(metadata.get(_PYTHON, "{}"))
    program = json.loads(metadata[_PROGRAM])["preparation"] if _PROGRAM in metadata else None
    is_prepared = program is not None and note.get("prepared", True)
    if is_prepared:
        # Box and units are those of the prepared inputs, so they are not parameters for raw rows.
        params = {name: value for name, value in params.items() if name not in ("lower", "upper", "weights")}
    known = cls._get_param_names()
    params |= {name: _from_json(value) for name, value in note.get("params", {}).items() if name in known}
    estimator = cls(**params)
    names, estimator.n_features_in_ = note.get("feature_names"), model.n_dims
    if is_prepared:
        estimator.preparation_ = Preparation(program)
        names = estimator.preparation_.columns
        if len(estimator.preparation_.inputs) != model.n_dims:
            raise ValueError("the inputs do not fit the model")
        estimator.n_features_in_ = len(names)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
        if estimator.feature_names_in_.shape != (estimator.n_features_in_,):
            raise ValueError("the number of names differs from the number of inputs")
    return estimator._restore(model, note.get("state", {}), program["target"] if program else None)


def notes_of(estimator, target):
    """The notes stored beside the core model: for Python, and for the program."""
    from . import _kinds

    preparation = estimator.__dict__.get("preparation_")
    names = estimator.__dict__.get("feature_names_in_")
    names = None if names is None else [str(name) for name in names]
    note = {
        "params": _params_to_json(estimator.get_params(deep=False)),
        "state": estimator._state(),
        "feature_names": None if preparation else names,
        "prepared": preparation is not None,
        "estimator": _kinds.name_of(estimator),
    }
    notes = [(_PYTHON, json.dumps(note, allow_nan=False))]
    record = _program_record(estimator, preparation, names, target)
    return notes if record is None else [*notes, (_PROGRAM, json.dumps(record, allow_nan=False))]


def _program_record(estimator, preparation, names, target):
    """The record with which the program can use the model on a table; None if it cannot."""
    from . import _kinds

    about = estimator._program_target(target)
    if _kinds.name_of(estimator) not in _PROGRAM_KINDS or about is False:
        return None
    n_rows = getattr(estimator._model, "n_rows", 0)
    if preparation is not None:
        prepared = preparation.record(n_rows)
    else:
        names = names or [f"column{number}" for number in range(1, estimator.n_features_in_ + 1)]
        # Python has no means of the columns, so the program has no value to fill in.
        number = {"number": {"fill": None, "map": "same"}}
        levels = estimator._program_levels()
        encodings = [number if found is None else {"level": {"levels": found}} for found in levels]
        inputs = [{"name": name, "encoding": encoding} for name, encoding in zip(names, encodings)]
        missing = "model" if estimator._models_missing_cells() else "refuse"
        prepared = {"inputs": inputs, "target": about, "missing": missing, "scaling": "none", "n_rows": n_rows}
    seed = estimator.random_state if isinstance(estimator.random_state, numbers.Integral) else 0
    return {"preparation": prepared, "seed": int(seed), "data": "Python"}


def write_whole(path, data):
    """Write a file atomically: after a crash or on a full disk the old file is unchanged.

    Devices and pipes are written to directly, not replaced by a file.
    """
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder")
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            file.write(data)
        return
    folder = os.path.dirname(target)
    handle, name = tempfile.mkstemp(prefix=".mondrian-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(name, _mode_for(target))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    # Not every file system can sync a folder; the rename has been done.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode_for(target):
    """The permissions of the old file, or 666 with the process's mask, as for any new file."""
    try:
        return os.stat(target).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask


def classes_to_json(classes):
    """Class labels with their type, as text or numbers."""
    listed = classes.tolist()
    if not all(isinstance(label, (str, bool, int, float)) for label in listed):
        raise TypeError("a model file can only store classes that are texts or numbers; use pickle for others")
    return {"dtype": "object" if classes.dtype == object else classes.dtype.str, "labels": listed}


def classes_from_json(noted, target):
    """Class labels from Python's note, else from the program's."""
    if noted is not None:
        return np.array(noted["labels"], dtype=np.dtype(noted["dtype"]))
    if target is None or target["classes"] is None:
        raise ValueError("the file has no names of the classes")
    texts = target["classes"]
    for read in (int, float):
        with contextlib.suppress(ValueError):
            values = [read(text) for text in texts]
            if [str(value) for value in values] == texts:
                return np.array(values)
    return np.array(texts)


def _params_to_json(params):
    """Parameters as JSON; those that JSON cannot represent keep their defaults."""
    found = {}
    for name, value in params.items():
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            value = str(value)
        if name == "random_state" and not isinstance(value, int):
            # The core stores the seed that was drawn.
            continue
        with contextlib.suppress(TypeError, ValueError):
            json.dumps(value, allow_nan=False)
            found[name] = value
    return found


def _from_json(value):
    return float(value) if value in ("inf", "-inf", "nan") else value
