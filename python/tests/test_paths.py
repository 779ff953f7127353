"""Regularization paths: what they hold, how they are drawn, that they equal refits."""

import pickle

import numpy as np
import pytest

import mondrian


def test_a_path_is_the_error_of_every_view(regression):
    X, y = regression
    forest = mondrian.MondrianForestRegressor(n_estimators=5, lifetime=6.0, random_state=0).fit(X[:80], y[:80])
    path = forest.path(X[80:], y[80:])
    assert path.loss == "rmse" and path.lifetimes[0] == 0.0 and (np.diff(path.lifetimes) > 0).all()
    assert path.train.shape == path.validation.shape == path.lifetimes.shape
    assert path.leave_one_out is None
    index = int(np.argmin(path.validation))
    assert path.best_lifetime == path.lifetimes[index] and path.best_lifetime_1se <= path.best_lifetime
    for lifetime in (0.0, 1.0, 6.0):
        rmse = np.sqrt(np.mean((forest.at(lifetime).predict(X[:80]) - y[:80]) ** 2))
        at = np.searchsorted(path.lifetimes, lifetime, side="right") - 1
        assert abs(path.train[at] - rmse) < 1e-9 * path.train[0]
    again = pickle.loads(pickle.dumps(path))
    assert np.array_equal(again.validation, path.validation) and again.best_lifetime == path.best_lifetime
    with pytest.raises(ValueError):
        path.value_at(-1.0)


def test_several_validation_sets_are_a_list(regression):
    X, y = regression
    forest = mondrian.MondrianForestRegressor(n_estimators=3, lifetime=3.0, random_state=0).fit(X[:60], y[:60])
    # Rows inside the box of the training rows: the path does not widen it, and each curve is the error of every view.
    inside = ((X[60:] >= X[:60].min(axis=0)) & (X[60:] <= X[:60].max(axis=0))).all(axis=1)
    X_in, y_in = X[60:][inside], y[60:][inside]
    first, second = (X_in[:10], y_in[:10]), (X_in[10:], y_in[10:])
    path = forest.path([first[0], second[0]], [first[1], second[1]])
    assert len(path.validation) == 2 and len(second[0]) > 5
    for lifetime in (0.0, 0.7, 3.0):
        at = np.searchsorted(path.lifetimes, lifetime, side="right") - 1
        for (rows, targets), curve in zip((first, second), path.validation):
            rmse = np.sqrt(np.mean((forest.at(lifetime).predict(rows) - targets) ** 2))
            assert abs(curve[at] - rmse) < 1e-9
    assert not np.array_equal(*path.validation)
    assert list(path.to_frame().columns) == ["lifetime", "train", "validation0", "validation1"]
    with pytest.raises(ValueError):
        forest.path([X[60:90], X[90:]], y[60:])


def test_density_paths_leave_one_out(rng):
    X = rng.normal(size=(40, 2))
    density = mondrian.MondrianDensity(n_estimators=5, lifetime=3.0, gamma=1.0, random_state=0).fit(X)
    path = density.path()
    assert path.loss == "neg_log_density" and path.validation is None
    total = density.leave_one_out_score()
    assert abs(path.leave_one_out[-1] + total / len(X)) < 1e-9
    assert abs(path.train[-1] + density.score(X) / len(X)) < 1e-9
    view = density.at(path.best_lifetime)
    assert abs(-view.leave_one_out_score() / len(X) - path.leave_one_out.min()) < 1e-9
    outside = density.path(np.vstack([X[:3], [[1e6, 0.0]]]))
    assert outside.n_outside == [1]


def test_classification_paths_are_exact_anywhere(classes):
    from sklearn.metrics import log_loss

    X, y = classes
    forest = mondrian.MondrianForestClassifier(n_estimators=5, lifetime=5.0, gamma=2.0, random_state=0)
    forest.fit(X[:80], y[:80])
    path = forest.path(X[80:], y[80:])
    assert path.loss == "log_loss"
    box = {"lower": X[:80].min(axis=0), "upper": X[:80].max(axis=0)}
    inside = ((X[80:] >= box["lower"]) & (X[80:] <= box["upper"])).all(axis=1)
    path = forest.path(X[80:][inside], y[80:][inside])
    expected = log_loss(y[80:][inside], forest.at(1.7).predict_proba(X[80:][inside]), labels=forest.classes_)
    assert abs(path.value_at(1.7) - expected) < 1e-9
    assert abs(pickle.loads(pickle.dumps(path)).value_at(1.7) - expected) < 1e-9
    errors = forest.path(X[80:], y[80:], loss="error", lifetimes=[1.0, 2.0])
    assert errors.loss == "error" and errors.lifetimes.tolist()[:3] == [0.0, 1.0, 2.0]


def test_the_kernels_path_is_the_error_of_every_view(regression):
    X, y = regression
    model = mondrian.MondrianKernelRidge(n_estimators=5, lifetime=6.0, alpha=0.1, random_state=0).fit(X[:80], y[:80])
    path = model.path(X[:80], y[:80])
    for lifetime in (0.0, 1.0, 6.0):
        rmse = np.sqrt(np.mean((model.at(lifetime).predict(X[:80]) - y[:80]) ** 2))
        assert abs(path.value_at(lifetime) - rmse) < 1e-7 * path.validation[0]
    assert path.worst_residual < 1e-6


def test_everything_draws(regression, rng, tmp_path):
    X, y = regression
    forest = mondrian.MondrianForestRegressor(n_estimators=3, lifetime=3.0, random_state=0).fit(X, y)
    path = forest.path(X, y)
    axes = path.plot()
    # Training, validation, the best lifetime, and the simplest one where it is another.
    assert len(axes.lines) == 3 + (path.best_lifetime_1se < path.best_lifetime) and axes.get_ylabel() == "RMSE"
    assert path.plot(ax=axes) is axes
    assert path.to_svg(tmp_path / "path.svg").startswith("<svg")
    model = mondrian.LaplaceKernelRidge(random_state=0).fit(X, y)
    assert model.trajectory_.plot(names=["a", "b", "c"]).get_xlabel() == "evaluation"
    assert len(model.trajectory_.to_frame()) == len(model.trajectory_)
    for n_dims in (1, 2, 3):
        density = mondrian.MondrianDensity(n_estimators=3, lifetime=2.0, gamma=1.0, random_state=0)
        density.fit(rng.normal(size=(30, n_dims))).plot(n_points=20)


def test_automatic_lifetimes_by_folds(regression, classes):
    X, y = regression
    for cls in (mondrian.MondrianForestRegressor, mondrian.MondrianKernelRidge, mondrian.MondrianDensity):
        plain, folds = (cls(8, validation=validation, random_state=0).fit(X, y) for validation in ("hold-out", 3))
        assert plain.lifetime_ == cls(8, random_state=0).fit(X, y).lifetime_
        assert folds.lifetime_ != plain.lifetime_
        # By a hash of coordinates: the order of rows does not matter.
        order = np.random.default_rng(5).permutation(len(X))
        assert cls(8, validation=3, random_state=0).fit(X[order], y[order]).lifetime_ == folds.lifetime_
    X, y = classes
    folds = mondrian.MondrianForestClassifier(8, validation=3, random_state=0).fit(X, y)
    assert folds.score(X, y) > 0.8
    both = mondrian.MondrianDensityClassifier(8, validation=3, random_state=0).fit(X, y)
    assert both.score(X, y) > 0.8


def test_leave_one_out_is_for_densities(regression, classes):
    X, y = regression
    held_out, left_out = (mondrian.MondrianDensity(8, validation=v, random_state=0).fit(X) for v in ("hold-out", "leave-one-out"))
    assert left_out.lifetime_ != held_out.lifetime_
    assert left_out.leave_one_out_score() >= left_out.at(min(left_out.lifetime_, held_out.lifetime_)).leave_one_out_score()
    for cls in (mondrian.MondrianForestRegressor, mondrian.MondrianKernelRidge):
        with pytest.raises(ValueError, match="leave-one-out|leave one out"):
            cls(8, validation="leave-one-out").fit(X, y)
    with pytest.raises(ValueError, match="leave-one-out|leave one out"):
        mondrian.MondrianForestClassifier(8, validation="leave-one-out").fit(*classes)


def test_alpha_is_chosen_with_the_lifetime(regression):
    X, y = regression
    model = mondrian.MondrianKernelRidge(10, alpha="auto", random_state=0).fit(X, y)
    assert model.alpha_ in 10.0 ** np.arange(-4, 2) and model.alpha_ != 1.0
    fixed = mondrian.MondrianKernelRidge(10, lifetime=2.0, alpha="auto", validation=4, random_state=0).fit(X, y)
    assert fixed.lifetime_ == 2.0 and fixed.alpha_ in 10.0 ** np.arange(-4, 2)
    assert mondrian.MondrianKernelRidge(10, alpha=0.3, random_state=0).fit(X, y).alpha_ == 0.3


def test_the_path_of_features_chooses_for_the_exact_kernel(regression):
    X, y = regression
    model = mondrian.LaplaceKernelRidge(lifetime="path", validation=3, random_state=0).fit(X[:80], y[:80])
    # One lifetime in units of deviations.
    assert np.ptp(model.lifetimes_ * X[:80].std(axis=0)) < 1e-9 * model.lifetimes_.max()
    assert model.score(X[80:], y[80:]) > 0.8


def test_the_best_lifetime_is_seen_wherever_it_is(rng):
    plt = pytest.importorskip("matplotlib.pyplot")
    X = rng.uniform(size=(400, 2))
    # Without noise the last lifetime of all is the best.
    forest = mondrian.MondrianForestRegressor(30, lifetime=float("inf"), random_state=0).fit(X, X[:, 0])
    path = forest.path(X, X[:, 0])
    assert path.best_lifetime > path.lifetimes[-100] and len(path) > 4000
    ax = path.plot()
    assert path.best_lifetime < 0.95 * ax.get_xlim()[1]
    plt.close(ax.figure)


def test_notebooks_show_paths_and_trajectories(regression):
    X, y = regression
    forest = mondrian.MondrianForestRegressor(n_estimators=3, lifetime=3.0, random_state=0).fit(X[:60], y[:60])
    path = forest.path(X[60:], y[60:])
    shown = path._repr_html_()
    assert shown.count("<svg") == 1 and f"{path.best_lifetime:.6g}" in shown
    trajectory = mondrian.LaplaceKernelRidge(random_state=0).fit(X[:40], y[:40]).trajectory_
    shown = trajectory._repr_html_()
    assert f"{len(trajectory)} evaluations" in shown and shown.count("(best)") == 1
    assert f"{trajectory.error[trajectory.best_index]:.6g}" in shown
