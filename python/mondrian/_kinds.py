"""The estimator of each kind of model file, and its parameters if only the core has stored them."""

from __future__ import annotations

import json

from ._classification import MondrianForestClassifier
from ._density import MondrianDensity, MondrianDensityClassifier
from ._features import MondrianFeatures, MondrianGridFeatures, RandomBinningFeatures, RandomFourierFeatures
from ._grid import MondrianGridRidge
from ._kernel import MondrianKernelRidge
from ._laplace import LaplaceKernelClassifier, LaplaceKernelRidge
from ._laplace_map import LaplaceMap
from ._regression import MondrianForestRegressor

CLASSES = {
    "forest.regression": MondrianForestRegressor,
    "forest.classification": MondrianForestClassifier,
    "density.forest": MondrianDensity,
    "density.classifier": MondrianDensityClassifier,
    "laplace.regression": LaplaceKernelRidge,
    "laplace.regressor": LaplaceKernelRidge,
    "laplace.classifier": LaplaceKernelClassifier,
    "kernel.regression": MondrianKernelRidge,
    "grid.regression": MondrianGridRidge,
    "features.mondrian": MondrianFeatures,
    "features.binning": RandomBinningFeatures,
    "features.fourier": RandomFourierFeatures,
    "features.grid": MondrianGridFeatures,
}

_WEIGHTS = {"auto": "auto", "deviation": "std", "raw": None}


#: Estimators that contain a model of another estimator's kind.
_OTHERS = {"LaplaceMap": LaplaceMap}


def name_of(estimator):
    """The name of an estimator's class in this package, also for a subclass of it."""
    known = [*CLASSES.values(), *_OTHERS.values()]
    return next((cls.__name__ for cls in known if isinstance(estimator, cls)), None)


def class_of(kind, note):
    """The estimator of a kind of model, unless the package's note in the file names another."""
    name = None if note is None else json.loads(note).get("estimator")
    return _OTHERS.get(name, CLASSES[kind])


def params_of(kind, metadata):
    """Constructor parameters from the notes of the core."""
    noted = {key.removeprefix("params:"): text for key, text in metadata.items() if key.startswith("params:")}
    read = _READERS.get(kind)
    return {} if read is None else read({name: json.loads(text) for name, text in noted.items()})



def _forest(noted):
    lifetime, weights, bounds = noted["lifetime"], noted["weights"], noted["bounds"]
    return {
        "n_estimators": noted["n_trees"],
        "lifetime": lifetime if lifetime == "auto" else float(lifetime["value"]),
        "random_state": noted["seed"],
        "measure": _measure(noted["measure"]),
        "weights": weights["given"] if isinstance(weights, dict) else _WEIGHTS[weights],
        "validation": _validation(noted.get("validation", "hold_out")),
        "lower": None if bounds is None else bounds[0],
        "upper": None if bounds is None else bounds[1],
        **{rule: noted[rule] for rule in ("window", "max_rows", "warm_up") if rule in noted},
    }


def _measure(noted):
    if not isinstance(noted, dict):
        return noted
    return [[list(knot) for knot in zip(axis["values"], axis["coordinates"])] for axis in noted["given"]]


def _validation(noted):
    return noted["k_fold"] if isinstance(noted, dict) else noted.replace("_", "-")


def _auto(value):
    return "auto" if value is None or value == "auto" else float(value["value"] if isinstance(value, dict) else value)


def _regression(noted):
    own = noted["regression"]
    prior = {
        "prior_mean": _auto(own["prior"]["mean"]),
        "prior_variance": _auto(own["prior"]["variance"]),
        "noise_variance": _auto(own["prior"]["noise"]),
        "kappa": _auto(own["prior"].get("kappa")),
    }
    return {**_forest(own["forest"]), **prior, "leaf_model": own["leaf_model"], "unseen": own["unseen"]}


def _classification(noted):
    own = noted["classification"]
    return {**_forest(own["forest"]), "gamma": _auto(own["gamma"]), "unseen": own["unseen"]}


def _density(noted, part=""):
    own = noted[part + "density"]["params"]
    return {**_forest(own["forest"]), "gamma": _auto(own["gamma"]), "margin": own["margin"]}


def _density_classifier(noted):
    return {**_density(noted, "ground/"), "class_prior": noted["prior"]}


def _ground(noted):
    """For models that store only the domain of their trees."""
    ground = noted["ground"]
    return {"n_estimators": ground["n_trees"], "random_state": ground["seed"]}


def _kernel(noted):
    own = noted["kernel"]
    chosen = {"lifetime": float(own["lifetime"]), "alpha": own["alpha"], "fit_intercept": own["fit_intercept"]}
    return {**_ground(noted), **chosen}


def _grid(noted):
    return {"n_estimators": noted["ridge/grids"]["n_grids"], "random_state": noted["ridge/grids"]["seed"]}


def _features(noted):
    return {**_ground(noted), "lifetime": float(noted["lifetime"])}


def _grid_features(noted):
    return {"n_estimators": noted["grids"]["n_grids"], "random_state": noted["grids"]["seed"]}


_READERS = {
    "forest.regression": _regression,
    "forest.classification": _classification,
    "density.forest": _density,
    "density.classifier": _density_classifier,
    "kernel.regression": _kernel,
    "grid.regression": _grid,
    "features.mondrian": _features,
    "features.grid": _grid_features,
}
