"""The evaluations of a search for lifetimes."""

from __future__ import annotations

import numpy as np

from ._core import made_by_core
from ._docs import documented
from ._plotting import axes_for, frame_of, html_table


@documented
class Trajectory:
    """Every configuration that a search has evaluated, in order.

    Attributes
    ----------
    lifetimes : ndarray of shape (n_steps, n_features)
        The lifetimes of each evaluation.
    alpha : ndarray of shape (n_steps,)
        Its regularization.
    error : ndarray of shape (n_steps,)
        Its root mean squared error, by leave-one-out or on held-out rows.
    cost : ndarray of shape (n_steps,)
        Estimated number of floating-point operations up to this evaluation.
    rows : ndarray of shape (n_steps,)
        Number of training rows of the error; only errors on equal numbers of rows are comparable.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import LaplaceKernelRidge
    >>> X = np.random.default_rng(0).uniform(size=(30, 1))
    >>> trajectory = LaplaceKernelRidge(random_state=0).fit(X, X[:, 0] ** 2).trajectory_
    >>> len(trajectory) == len(trajectory.error)
    True
    >>> trajectory.lifetimes.shape[1]
    1
    """

    def __init__(self, columns, names=None):
        self._names = names
        columns = made_by_core(columns, dict, "an estimator that was tuned, as trajectory_")
        self.lifetimes = columns["lifetimes"]
        self.alpha = columns["alpha"]
        self.error = columns["error"]
        self.cost = columns["cost"]
        self.rows = columns["rows"]

    def __len__(self):
        return len(self.error)

    def __repr__(self):
        best = f", best error {self.error[self.best_index]:.6g}" if len(self) else ""
        return f"Trajectory({len(self)} evaluations{best})"

    def _repr_html_(self):
        """Representation in notebooks: the best evaluation and the last ones, with the lifetimes of the first inputs."""
        n_shown = min(8, self.lifetimes.shape[1])
        names = [f"input {d}" for d in range(n_shown)] if self._names is None else [str(n) for n in self._names[:n_shown]]
        best = self.best_index if len(self) else None
        shown = sorted({*range(max(0, len(self) - 5), len(self)), *([] if best is None else [best])})
        rows = [
            (f"{k + 1}{' (best)' if k == best else ''}", f"{self.error[k]:.6g}", f"{self.alpha[k]:.4g}", int(self.rows[k]))
            + tuple(f"{lifetime:.4g}" for lifetime in self.lifetimes[k, :n_shown])
            for k in shown
        ]
        more = "" if n_shown == self.lifetimes.shape[1] else f"<p>{self.lifetimes.shape[1] - n_shown} more inputs</p>"
        header = ("evaluation", "error", "alpha", "rows", *(f"lifetime of {name}" for name in names))
        return f"<div><p>{len(self)} evaluations</p>{html_table(rows, header)}{more}</div>"

    @property
    def best_index(self):
        """The index of the smallest error among the evaluations on as many rows as the last."""
        if not len(self):
            raise ValueError("nothing was evaluated")
        return int(np.argmin(np.where(self.rows == self.rows[-1], self.error, np.inf)))

    def to_frame(self):
        """All evaluations as a pandas frame, one row per evaluation."""
        columns = {"error": self.error, "alpha": self.alpha, "rows": self.rows, "cost": self.cost}
        columns |= {f"lifetime{d}": self.lifetimes[:, d] for d in range(self.lifetimes.shape[1])}
        return frame_of(columns)

    def plot(self, ax=None, names=None):
        """Draw the lifetimes against the number of the evaluation, and mark the best one.

        {ax}
        names : sequence of str, default=None
            Names of the inputs. Default: those that the estimator was fitted with.

        {drawn}
        """
        ax = axes_for(ax)
        names = self._names if names is None else names
        for dim in range(self.lifetimes.shape[1]):
            label = f"input {dim}" if names is None else str(names[dim])
            ax.plot(np.arange(1, len(self) + 1), self.lifetimes[:, dim], ".-", label=label, linewidth=1.2, markersize=4)
        if len(self):
            label = f"best: error {self.error[self.best_index]:.4g}"
            ax.axvline(self.best_index + 1, color="0.4", linestyle="--", linewidth=1.0, label=label)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_yscale("symlog", linthresh=max(1e-6, float(self.lifetimes.max(initial=0.0)) * 1e-3))
        ax.set_ylim(bottom=0)
        ax.set_xlabel("evaluation")
        ax.set_ylabel("lifetime")
        if 0 < self.lifetimes.shape[1] <= 12:
            ax.legend(frameon=False)
        return ax
