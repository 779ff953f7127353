"""Every estimator, with the parameters that the suite runs it with."""

import inspect

import mondrian

#: Estimators that sample: a seed, so that checks which compare two fits compare the same model.
ALL = [
    cls
    for _, cls in sorted(vars(mondrian).items())
    if inspect.isclass(cls) and hasattr(cls, "get_params") and hasattr(cls, "fit")
]
