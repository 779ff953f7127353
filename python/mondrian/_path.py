"""A model's error at every lifetime, from one fit."""

from __future__ import annotations

import numpy as np

from . import _mondrian
from . import _parameters as parameters
from ._core import made_by_core, of_core
from ._docs import documented
from ._plotting import axes_for, frame_of, html_table, written

_LABELS = {"rmse": "RMSE", "log_loss": "log loss", "error": "share of errors", "neg_log_density": "mean −log density"}


@documented
class RegularizationPath:
    """Losses as functions of the lifetime: value ``i`` holds from ``lifetimes[i]`` up to ``lifetimes[i + 1]``.

    Made by the ``path`` method of an estimator.

    Attributes
    ----------
    lifetimes : ndarray of shape (n_values,)
        Where values change, ascending from 0.
    train : ndarray of shape (n_values,)
        Mean loss on the training rows.
    validation : ndarray of shape (n_values,), or list of such
        Mean loss on the validation rows; a list if several sets were given.
    leave_one_out : ndarray of shape (n_values,) or None
        Densities only: mean loss of the training rows left out one by one.
    loss : {"rmse", "log_loss", "error", "neg_log_density"}
        The loss.
    best_lifetime : float
        The lifetime of smallest loss on the first validation set (or by leave-one-out).
    best_lifetime_1se : float
        The smallest lifetime whose loss is within one standard error of the smallest loss.
    worst_residual : float or None
        Kernel ridge only: the largest relative residual of the solution along the path.
    n_outside : list of int or None
        Densities only: rows of each validation set outside the box.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianForestRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> forest = MondrianForestRegressor(n_estimators=10, lifetime=8.0, random_state=0).fit(X[::2], y[::2])
    >>> path = forest.path(X[1::2], y[1::2])
    >>> view = forest.at(path.best_lifetime)
    >>> bool(path.value_at(path.best_lifetime) == path.validation.min())
    True
    """

    def __init__(self, inner, several=False, exact=None, n_outside=None):
        kinds = (_mondrian.RegularizationPath, _mondrian.ClassificationPath)
        self._inner = made_by_core(inner, kinds, "an estimator's method path")
        self._several = several
        self._exact = exact
        self.loss = inner.loss
        self.lifetimes = inner.lifetimes
        self.train = inner.train
        curves = inner.validation
        self.validation = curves if several else (curves[0] if curves else None)
        self.leave_one_out = inner.leave_one_out
        self.n_outside = n_outside
        self.worst_residual = None

    best_lifetime = of_core("best_lifetime", "The lifetime of least loss.")
    best_lifetime_1se = of_core("best_lifetime_1se", "The smallest lifetime within one standard error of the least loss.")
    standard_error = of_core("standard_error", "Standard error of the least loss over the validation rows, or None.")

    def value_at(self, lifetime):
        """The selecting loss at a lifetime: the first validation set's, else leave-one-out, else training.

        Parameters
        ----------
        lifetime : float
            Any lifetime of the path.

        Returns
        -------
        value : float
        """
        lifetime = parameters.real("lifetime", lifetime, infinite=True)
        return self._inner.value_at(lifetime) if self._exact is None else self._exact(lifetime)

    def _curves(self):
        curves = {"train": self.train}
        validation = [] if self.validation is None else self.validation if self._several else [self.validation]
        for number, curve in enumerate(validation):
            curves["validation" if not self._several else f"validation{number}"] = curve
        if self.leave_one_out is not None:
            curves["leave_one_out"] = self.leave_one_out
        return curves

    def to_frame(self):
        """The whole path as a pandas frame.

        Returns
        -------
        frame : pandas.DataFrame
        """
        return frame_of({"lifetime": self.lifetimes, **self._curves()})

    def to_svg(self, path=None):
        """The path as an SVG picture.

        {svg_file}

        {svg}
        """
        return written(self._inner.to_svg(), path)

    def plot(self, ax=None):
        """Draw all curves and mark the best lifetime, and the simplest within one standard error of it.

        {ax}

        {drawn}
        """
        ax = axes_for(ax)
        drawn = self if len(self.lifetimes) <= 4000 else RegularizationPath(self._inner.thinned(4000), self._several)
        for name, curve in drawn._curves().items():
            shown = np.where(np.isfinite(curve), curve, np.nan)
            ax.step(drawn.lifetimes, shown, where="post", label=name.replace("_", " "), linewidth=1.4)
        ax.axvline(self.best_lifetime, color="0.4", linestyle="--", linewidth=1.0, label=f"best: {self.best_lifetime:.4g}")
        if self.standard_error is not None and self.best_lifetime_1se < self.best_lifetime:
            label = f"within 1 s.e.: {self.best_lifetime_1se:.4g}"
            ax.axvline(self.best_lifetime_1se, color="0.4", linestyle=":", linewidth=1.0, label=label)
        finite = drawn.lifetimes[np.isfinite(drawn.lifetimes)]
        if finite[-1] > 0:
            ax.set_xscale("symlog", linthresh=float(np.quantile(finite[finite > 0], 0.1)))
            # A lifetime at the end of the axis is drawn over the frame, not under it.
            ax.set_xlim(0, 1.1 * max(finite[-1], self.best_lifetime if np.isfinite(self.best_lifetime) else 0.0))
        ax.set_xlabel("lifetime")
        ax.set_ylabel(_LABELS[self.loss])
        ax.legend(frameon=False)
        return ax

    def _repr_html_(self):
        """Representation in notebooks: the curves and the candidate lifetimes."""
        rows = [("loss", _LABELS[self.loss]), ("values", f"{len(self):,}"), ("best lifetime", f"{self.best_lifetime:.6g}")]
        rows.append(("loss there", f"{self.value_at(self.best_lifetime):.6g}"))
        if self.standard_error is not None:
            rows.append(("simplest within 1 s.e.", f"{self.best_lifetime_1se:.6g}"))
        return f"<div>{self.to_svg()}{html_table(rows)}</div>"

    def __len__(self):
        return len(self.lifetimes)

    def __repr__(self):
        return f"RegularizationPath({self.loss}, {len(self)} values, best lifetime {self.best_lifetime:.6g})"
