"""Training in parts: summaries add up to the forest of one fit, bit for bit, through pickle and bytes."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mondrian

RANDOM = np.random.default_rng(3)
X = np.round(RANDOM.normal(size=(900, 3)), 2)
Y = X[:, 0] * 3 + np.abs(X[:, 1]) + 0.1 * RANDOM.normal(size=900)
LABELS = np.where(X[:, 2] + X[:, 0] > 0.3, "yes", "no")
LIFETIME = 1.5


def box(domain):
    return {
        "lower": domain.lower, "upper": domain.upper, "weights": domain.weights, "lifetime": domain.lifetime,
        "n_estimators": domain.n_estimators, "random_state": domain.seed,
    }  # fmt: skip


def chunks(size, seed):
    starts = np.arange(0, len(X), size)
    np.random.default_rng(seed).shuffle(starts)
    return [slice(start, start + size) for start in starts]


def trained(y, task, size, seed=0, **options):
    parts = chunks(size, seed)
    moments = mondrian.Moments(X[parts[0]], None if y is None else y[parts[0]], task=task)
    for part in parts[1:]:
        moments.merge(pickle.loads(pickle.dumps(mondrian.Moments(X[part], None if y is None else y[part], task=task))))
    assert moments.n_rows_ == len(X)
    options = {"n_estimators": 7, "lifetime": LIFETIME, "random_state": 5, **options}
    domain = mondrian.Domain.from_json(moments.domain(**options).to_json())
    summaries = [mondrian.summarize(X[part], None if y is None else y[part], domain, task=task) for part in parts]
    summary = mondrian.Summary.from_bytes(summaries[0].to_bytes())
    for other in summaries[1:]:
        summary.merge(pickle.loads(pickle.dumps(other)))
    assert (summary.n_rows, summary.task, summary.domain) == (len(X), task, domain)
    return domain, summary


@pytest.mark.parametrize("size", [1000, 450, 101])
def test_regression_is_one_fit(size):
    domain, summary = trained(Y, "regression", size)
    forest = summary.finish()
    whole = mondrian.MondrianForestRegressor(**box(domain)).fit(X, Y)
    queries = np.vstack([X, 2 * X])
    # Deviations and importances of a fit come from rows that it leaves out; a forest without rows has none to leave out.
    mean, std = forest.predict(queries, return_std=True)
    assert np.array_equal(mean, whole.predict(queries)) and (std > 0).all()
    assert forest.kappa_ == whole.kappa_
    view = forest.at(0.4)
    assert np.array_equal(view.predict(X), whole.at(0.4).predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(view)).predict(X), view.predict(X))
    assert forest.feature_importances_.sum() == pytest.approx(1.0)
    path = forest.path(X[:50], Y[:50])
    assert path.best_lifetime == whole.path(X[:50], Y[:50]).best_lifetime
    assert np.isnan(path.train).all()


def test_classification_is_one_fit():
    domain, summary = trained(LABELS, "classification", 130)
    forest = summary.finish()
    whole = mondrian.MondrianForestClassifier(**box(domain)).fit(X, LABELS)
    assert forest.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(forest.predict_proba(2 * X), whole.predict_proba(2 * X))
    assert (forest.predict(X) == whole.predict(X)).all()


def test_density_is_one_fit():
    domain, summary = trained(None, "density", 130, margin=0.1)
    density = summary.finish()
    whole = mondrian.MondrianDensity(**box(domain)).fit(X)
    assert np.array_equal(density.score_samples(X), whole.score_samples(X))
    with pytest.raises(ValueError, match="needs the training rows"):
        density.leave_one_out_score()


def test_a_file_of_a_finished_forest_opens(tmp_path):
    _, summary = trained(Y, "regression", 300)
    forest = summary.finish()
    forest.save(tmp_path / "forest.model")
    again = mondrian.load(tmp_path / "forest.model")
    assert np.array_equal(again.predict(X), forest.predict(X))


def test_a_lifetime_is_chosen_whatever_the_parts():
    found = [trained(Y, "regression", size, size, lifetime="auto")[1].finish() for size in (1000, 77)]
    assert found[0].lifetime_ == found[1].lifetime_ <= found[0].lifetime
    assert np.array_equal(found[0].predict(X), found[1].predict(X))


def test_shards_are_joined():
    domain, summary = trained(Y, "regression", 1000)
    first = mondrian.summarize(X, Y, domain, trees=(0, 3))
    with pytest.raises(ValueError, match="join the other shards"):
        first.finish()
    first.join(mondrian.summarize(X, Y, domain, trees=(3, 7)))
    assert first.to_bytes() == summary.to_bytes()


def test_what_needs_rows_says_so():
    _, summary = trained(Y, "regression", 300)
    forest = summary.finish()
    for call in (
        lambda: forest.partial_fit(X, Y),
        lambda: forest.forget(X[:1], Y[:1]),
        lambda: forest.merge(forest),
        lambda: forest.equivalent_kernel(X[:2]),
    ):
        with pytest.raises(ValueError, match="needs the training rows"):
            call()
    with pytest.raises(ValueError, match="grown to"):
        forest.at(LIFETIME * 2)


def test_wrong_parts_are_refused():
    domain, summary = trained(Y, "regression", 300)
    with pytest.raises(ValueError, match="outside the box"):
        mondrian.summarize(X + 100, Y, domain)
    with pytest.raises(ValueError, match="take them over all rows"):
        mondrian.summarize(X, 1e3 * Y, domain)
    with pytest.raises(ValueError, match="rows, but y has"):
        mondrian.summarize(X, Y[:5], domain)
    with pytest.raises(ValueError, match="has no classes"):
        mondrian.summarize(X, LABELS, domain, task="classification")
    labelled, _ = trained(LABELS, "classification", 300)
    with pytest.raises(ValueError, match="not in the domain"):
        mondrian.summarize(X, np.where(X[:, 0] > 0, "maybe", "no"), labelled, task="classification")
    with pytest.raises(ValueError, match="differ"):
        summary.merge(mondrian.summarize(X, None, domain, task="density"))
    with pytest.raises(TypeError):
        summary.merge(1)
    with pytest.raises(ValueError, match="finite for a summary"):
        mondrian.Moments(X, Y).domain(lifetime=np.inf)
    for text in ("", "{}", "[1]"):
        with pytest.raises(ValueError, match="cannot be read"):
            mondrian.Domain.from_json(text)
    data = summary.to_bytes()
    for wrong in (b"", data[:-1], data[: len(data) // 2], b"x" * 100, data[:200] + b"\0" + data[201:]):
        with pytest.raises(ValueError):
            mondrian.Summary.from_bytes(wrong)


def test_names_of_columns_travel():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    domain = mondrian.Moments(frame, Y).domain(n_estimators=3, lifetime=LIFETIME, random_state=0)
    forest = mondrian.summarize(frame, Y, domain).finish()
    assert forest.feature_names_in_.tolist() == list("abc")
    with pytest.raises(ValueError, match="columns"):
        mondrian.summarize(frame[["b", "a", "c"]], Y, domain)


def test_nothing_of_dask_is_imported():
    code = "import sys, mondrian; print([name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_code_of_the_page_runs():
    page = Path(__file__).parents[2] / "docs/many-machines.md"
    if not page.exists():
        pytest.skip("the pages lie beside the source")
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    exec(compile(code, str(page), "exec"), {})
