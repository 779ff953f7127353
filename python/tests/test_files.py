"""Model files: whole, refused when damaged, and the same in Python and in the program."""

import json
import os
import pickle
import stat
import threading

import estimators
import numpy as np
import pandas as pd
import polars as pl
import program
import pytest
from sklearn.base import is_classifier
from test_family import answer, small, target

import mondrian

PROGRAM_MODELS = [
    (mondrian.MondrianForestRegressor, "forest"),
    (mondrian.MondrianForestClassifier, "forest"),
    (mondrian.LaplaceKernelRidge, "laplace"),
    (mondrian.LaplaceKernelClassifier, "laplace"),
    (mondrian.MondrianKernelRidge, "kernel"),
    (mondrian.MondrianGridRidge, "grid"),
    (mondrian.MondrianDensity, "density"),
]


@pytest.fixture
def rows(rng):
    return rng.uniform(size=(60, 2))


def column(path, name):
    return pd.read_csv(path)[name].to_numpy()


# --- Python alone


@pytest.mark.parametrize("cls", estimators.ALL)
def test_what_was_saved_is_loaded_with_every_bit(cls, rows, tmp_path):
    frame = pd.DataFrame(rows, columns=["width", "height"])
    for X in (rows, frame):
        model = small(cls).fit(X, target(cls, rows))
        model.save(tmp_path / "model.mondrian")
        again = mondrian.load(str(tmp_path / "model.mondrian"))
        assert type(again) is cls and again.get_params() == model.get_params()
        assert np.array_equal(answer(again, X), answer(model, X))
        fitted = {name for name in vars(model) if name.endswith("_")}
        assert fitted == {name for name in vars(again) if name.endswith("_")}
        # And once more through both: nothing is lost on the way.
        again.save(tmp_path / "again.mondrian")
        assert (tmp_path / "again.mondrian").read_bytes() == (tmp_path / "model.mondrian").read_bytes()
        assert np.array_equal(answer(pickle.loads(pickle.dumps(again)), X), answer(model, X))
    with pytest.raises(ValueError, match="feature names"):
        answer(again, frame[["height", "width"]])


@pytest.mark.parametrize("cls", estimators.ALL)
def test_a_pickle_holds_a_model_file(cls, rows):
    model = small(cls).fit(rows, target(cls, rows))
    function, (data,) = model._model.__reduce__()
    assert b"mondrian-model" in data[:4096] or b"mondrian-model" in data
    assert function(data).to_bytes() == data


def test_parameters_survive_where_json_can_hold_them(rows, tmp_path):
    heard = []
    forest = mondrian.MondrianForestRegressor(
        n_estimators=3,
        lifetime=float("inf"),
        lower=np.array([-1.0, -1.0]),
        upper=[2, 2],
        weights=np.float64(1.0) * np.ones(2),
        random_state=np.random.RandomState(3),
        verbose=heard.append,
    ).fit(rows, rows[:, 0])
    forest.save(tmp_path / "m")
    params = mondrian.load(tmp_path / "m").get_params()
    assert params["lifetime"] == float("inf") and params["lower"] == [-1.0, -1.0] and params["upper"] == [2, 2]
    # A generator is gone, but the seed that it gave is known; somebody who listens is not.
    seed = np.random.RandomState(3).randint(0, 2**63 - 1, dtype=np.int64)
    assert params["random_state"] == seed and params["verbose"] is False


def test_a_model_without_notes_says_what_the_core_knows(rows, tmp_path):
    y = rows[:, 0]
    models = [
        mondrian.MondrianForestRegressor(4, lifetime=3.0, prior_mean=0.5, noise_variance=0.1, unseen="integrate", random_state=7),
        mondrian.MondrianForestRegressor(4, weights=[1.0, 2.0], measure="quantile", leaf_model="independent", random_state=7),
        mondrian.MondrianDensity(4, lifetime=2.0, gamma=0.01, validation="leave-one-out", margin=0.2, random_state=7),
        mondrian.MondrianKernelRidge(4, lifetime=2.0, alpha=0.3, random_state=7),
        mondrian.MondrianGridRidge(4, random_state=7),
        mondrian.LaplaceKernelRidge(random_state=7),
        mondrian.MondrianFeatures(4, lifetime=2.0, random_state=7),
        mondrian.MondrianGridFeatures(4, lifetimes=2.0, random_state=7),
    ]
    for model in models:
        model.fit(rows, y)
        (tmp_path / "m").write_bytes(model._model.to_bytes())
        again = mondrian.load(tmp_path / "m")
        assert np.array_equal(answer(again, rows), answer(model, rows))
        for name in ("n_estimators", "lifetime", "prior_mean", "noise_variance", "unseen", "measure", "weights", "validation"):
            if name in again.get_params() and not isinstance(model, mondrian.LaplaceKernelRidge):
                assert again.get_params()[name] == model.get_params()[name], name
    # The classes have no names.
    classifier = mondrian.MondrianForestClassifier(3, random_state=0).fit(rows, y > 0.5)
    (tmp_path / "m").write_bytes(classifier._model.to_bytes())
    with pytest.raises(ValueError, match="classes"):
        mondrian.load(tmp_path / "m")


@pytest.mark.parametrize("labels", [[0, 3], [1.0, 2.0], [True, False], ["b", "a"], np.array(["x", "y"], dtype=object)])
def test_classes_keep_their_type(labels, rows, tmp_path):
    y = np.asarray(labels)[(rows[:, 0] > 0.5).astype(int)]
    for cls in (mondrian.MondrianForestClassifier, mondrian.MondrianDensityClassifier):
        model = cls(3, random_state=0).fit(rows, y)
        model.save(tmp_path / "m")
        again = mondrian.load(tmp_path / "m")
        assert again.classes_.dtype == model.classes_.dtype
        assert np.array_equal(again.predict(rows), model.predict(rows))


def test_a_loaded_forest_goes_on_learning(rows, tmp_path):
    y = rows[:, 0]
    mondrian.MondrianForestRegressor(5, lifetime=4.0, random_state=0, lower=[0, 0], upper=[1, 1]).fit(rows[:30], y[:30]).save(tmp_path / "m")
    again = mondrian.load(tmp_path / "m").partial_fit(rows[30:], y[30:])
    whole = mondrian.MondrianForestRegressor(5, lifetime=4.0, random_state=0, lower=[0, 0], upper=[1, 1]).fit(rows, y)
    assert np.array_equal(again.predict(rows), whole.predict(rows))
    assert np.array_equal(again.forget(rows[30:], y[30:]).predict(rows), mondrian.load(tmp_path / "m").predict(rows))


def test_several_targets_are_python_s_own(rows, tmp_path):
    model = mondrian.MondrianForestRegressor(3, random_state=0).fit(rows, rows)
    model.save(tmp_path / "m")
    assert np.array_equal(mondrian.load(tmp_path / "m").predict(rows), model.predict(rows))
    one = mondrian.MondrianForestRegressor(3, random_state=0).fit(rows, rows[:, 0])
    one.save(tmp_path / "m")
    assert mondrian.load(tmp_path / "m").predict(rows).shape == (60,)


@pytest.mark.parametrize("cls", estimators.ALL)
def test_damaged_files_are_refused(cls, rows, tmp_path):
    path = tmp_path / "m"
    small(cls).fit(rows, target(cls, rows)).save(path)
    data = path.read_bytes()
    for end in (0, 7, 8, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:end])
        with pytest.raises(ValueError):
            mondrian.load(path)
    for place in range(0, len(data), max(1, len(data) // 97)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ValueError):
            mondrian.load(path)


def test_the_core_says_what_is_wrong(rows, tmp_path):
    path = tmp_path / "m"
    mondrian.MondrianForestRegressor(3, random_state=0).fit(rows, rows[:, 0]).save(path)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(ValueError, match=f"truncated|{len(data) - 1}"):
        mondrian.load(path)
    path.write_bytes(data.replace(b'"version":"2"', b'"version":"9"'))
    with pytest.raises(ValueError, match="version 9.*use a newer one"):
        mondrian.load(path)
    path.write_text("width,height\n1,2\n")
    with pytest.raises(ValueError, match="model file"):
        mondrian.load(path)
    with pytest.raises(FileNotFoundError):
        mondrian.load(tmp_path / "nowhere")


def test_notes_that_make_no_sense_are_refused(rows, tmp_path):
    model = mondrian.MondrianForestClassifier(3, random_state=0).fit(rows, rows[:, 0] > 0.5)
    good = json.loads(dict(notes(model))["params:python"])
    for bad in ["nonsense", "[]", json.dumps({**good, "state": 3}), json.dumps({**good, "feature_names": 7}),
                json.dumps({**good, "state": {"classes": {"dtype": "<i8", "labels": [1]}}})]:  # fmt: skip
        (tmp_path / "m").write_bytes(model._model.to_bytes([("params:python", bad)]))
        with pytest.raises(ValueError):
            mondrian.load(tmp_path / "m")


def notes(model):
    from mondrian import _files

    return _files.notes_of(model, "target")


def test_files_appear_whole(rows, tmp_path, monkeypatch):
    path = tmp_path / "m"
    first = mondrian.MondrianForestRegressor(3, random_state=0).fit(rows, rows[:, 0])
    first.save(path)
    before = path.read_bytes()
    os.chmod(path, 0o640)
    second = mondrian.MondrianForestRegressor(4, random_state=0).fit(rows, rows[:, 0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
        with pytest.raises(OSError, match="full"):
            second.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m"]
    # Through a link the file it points to is replaced, and permissions stay.
    (tmp_path / "link").symlink_to("m")
    second.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and path.read_bytes() != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(IsADirectoryError):
        second.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        second.save(tmp_path / "nowhere" / "m")
    with pytest.raises(Exception, match="not fitted"):
        mondrian.MondrianDensity().save(path)


def test_pictures_appear_whole_too(tmp_path, monkeypatch):
    partition = mondrian.process.sample([0.0, 0.0], [1.0, 1.0], 2.0, seed=0)
    text = partition.to_svg(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text("utf-8") == text
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="full"):
        partition.to_svg(tmp_path / "p.svg", paint=True)
    assert (tmp_path / "p.svg").read_text("utf-8") == text and os.listdir(tmp_path) == ["p.svg"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_what_is_no_file_is_written_to_and_stays(rows, tmp_path):
    model = mondrian.MondrianForestRegressor(3, random_state=0).fit(rows, rows[:, 0])
    model.save(os.devnull)
    assert not os.path.isfile(os.devnull)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    model.save(pipe)
    reader.join()
    model.save(tmp_path / "m")
    assert received == [(tmp_path / "m").read_bytes()] and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("path", [1, True, None, 1.5])
def test_a_path_is_a_path_and_no_open_file(path, rows, tmp_path):
    model = mondrian.MondrianForestRegressor(3, random_state=0).fit(rows, rows[:, 0])
    for call in (mondrian.load, model.save):
        with pytest.raises(TypeError):
            call(path)


# --- with the program


@program.needed
@pytest.mark.parametrize(("cls", "kind"), PROGRAM_MODELS)
def test_the_program_opens_what_python_saved(cls, kind, rows, tmp_path):
    frame = pd.DataFrame(rows, columns=["width", "height"])
    for X, header in ((frame, True), (rows, False)):
        model = small(cls)
        model.fit(X, target(cls, rows)).save(tmp_path / "m")
        frame.to_csv(tmp_path / "rows.csv", index=False, header=header)
        assert program.run("inspect", tmp_path / "m")["parameters"]["program"]["data"] == "Python"
        out = tmp_path / "out.csv"
        program.run("predict", tmp_path / "m", tmp_path / "rows.csv", "--out", out)
        if kind == "density":
            assert np.array_equal(column(out, "log_density"), model.score_samples(X))
        elif hasattr(model, "predict_proba"):
            assert np.array_equal(column(out, "prediction"), model.predict(X))
            assert np.array_equal(column(out, "p_1"), model.predict_proba(X)[:, 1])
        else:
            assert np.array_equal(column(out, "prediction"), model.predict(X))


@program.needed
def test_categories_and_missing_cells_of_python_are_the_programs(rng, tmp_path):
    frame = pd.DataFrame({"x": rng.uniform(size=90), "town": rng.choice(["a", "b b", "c"], size=90), "y": rng.uniform(size=90)})
    frame.loc[[3, 40], "x"] = np.nan
    frame.loc[7, "town"] = None
    learned = frame.assign(town=frame["town"].astype("category"))[["x", "town"]]
    frame[["x", "town"]].to_csv(tmp_path / "rows.csv", index=False)
    for model, y in (
        (mondrian.LaplaceKernelRidge(random_state=0), frame["y"]),
        (mondrian.LaplaceKernelClassifier(random_state=0), np.where(frame["y"] > 0.5, "up", "down")),
    ):
        model.fit(learned, y).save(tmp_path / "m")
        program.run("predict", tmp_path / "m", tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
        assert np.array_equal(column(tmp_path / "out.csv", "prediction"), model.predict(learned))


@program.needed
def test_the_program_goes_on_learning_what_python_began(rows, tmp_path):
    y = np.where(rows[:, 0] > 0.5, "high", "low")
    frame = pd.DataFrame(rows, columns=["width", "height"])
    box = {"lower": [0, 0], "upper": [1, 1], "weights": None, "lifetime": 5.0, "gamma": 1.0, "random_state": 1}
    mondrian.MondrianForestClassifier(5, **box).fit(frame[:30], y[:30]).save(tmp_path / "m", target="size")
    frame[30:].assign(size=y[30:]).to_csv(tmp_path / "more.csv", index=False)
    program.run("update", tmp_path / "m", tmp_path / "more.csv")
    again = mondrian.load(tmp_path / "m")
    whole = mondrian.MondrianForestClassifier(5, **box).fit(rows, y)
    assert np.array_equal(again.predict_proba(frame), whole.predict_proba(rows))
    assert again.classes_.tolist() == ["high", "low"]
    # Missing cells cannot be filled in: Python has kept no means.
    frame[:3].assign(width=[1.0, np.nan, 2.0]).to_csv(tmp_path / "holes.csv", index=False)
    said = program.run("predict", tmp_path / "m", tmp_path / "holes.csv", "--missing", "mean", "--out", tmp_path / "o", code=2)
    assert "width" in json.dumps(said)


@program.needed
def test_models_the_program_does_not_know_are_refused_kindly(rows, tmp_path):
    for model in (mondrian.MondrianFeatures(random_state=0), mondrian.MondrianForestRegressor(2, random_state=0)):
        model.fit(rows, rows).save(tmp_path / "m")
        pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False, header=False)
        said = program.run("predict", tmp_path / "m", tmp_path / "rows.csv", "--out", tmp_path / "o", code=2)
        assert "Python" in json.dumps(said)


def table(rng, n):
    """Numbers of unlike scale, categories, classes."""
    return pd.DataFrame(
        {
            "length": rng.lognormal(3, 2, size=n),
            "colour": rng.choice(["red", "green", "sea blue"], size=n),
            "height": rng.normal(size=n),
            "grade": rng.choice([1, 2, 10], size=n),
            "target": rng.normal(size=n),
            "kind": rng.choice(["ant", "bee"], size=n),
        }
    )


@program.needed
@pytest.mark.parametrize("scaling", ["standard", "quantile", "none"])
@pytest.mark.parametrize(("cls", "kind"), PROGRAM_MODELS)
def test_python_opens_what_the_program_fitted(cls, kind, scaling, rng, tmp_path):
    learned, fresh = table(rng, 80), table(rng, 30)
    fresh.loc[3, "colour"] = "never seen"
    learned.to_csv(tmp_path / "learned.csv", index=False)
    fresh.to_csv(tmp_path / "fresh.csv", index=False)
    name = "kind" if is_classifier(cls()) else "target"
    what = ["--exclude", "target,kind"] if kind == "density" else ["--target", name, "--exclude", "target" if name == "kind" else "kind"]
    options = ["--categorical", "grade", "--scale", scaling, "--model", kind, "--out", tmp_path / "m"]
    if kind != "laplace":
        options += ["--trees", 5]
    program.run("fit", tmp_path / "learned.csv", *what, *options)
    out = tmp_path / "out.csv"
    program.run("predict", tmp_path / "m", tmp_path / "fresh.csv", "--out", out)
    model = mondrian.load(tmp_path / "m")
    assert type(model) is cls
    assert model.feature_names_in_.tolist() == ["length", "colour", "height", "grade"] and model.n_features_in_ == 4
    inputs = fresh[model.feature_names_in_.tolist()]
    # A frame with the columns in another order and more of them, one of polars, and an array in the file's order.
    for X in (fresh[fresh.columns[::-1]], pl.DataFrame(fresh.to_dict("list")), inputs.to_numpy(dtype=object)):
        if kind == "density":
            assert np.array_equal(model.score_samples(X), column(out, "log_density"))
        elif name == "kind":
            assert np.array_equal(model.predict(X), column(out, "prediction"))
            assert np.array_equal(model.predict_proba(X)[:, 1], column(out, "p_bee"))
        else:
            assert np.array_equal(model.predict(X), column(out, "prediction"))
            if kind not in ("grid",):
                assert np.allclose(model.predict(X, return_std=True)[1], column(out, "std"), rtol=1e-12)
    # Saved from here it is the program's again, byte for byte in what it predicts.
    model.save(tmp_path / "back")
    program.run("predict", tmp_path / "back", tmp_path / "fresh.csv", "--out", tmp_path / "out2.csv")
    assert (tmp_path / "out2.csv").read_bytes() == out.read_bytes()
    again = mondrian.load(tmp_path / "back")
    assert again.preparation_ == model.preparation_ and again.get_params() == model.get_params()


@program.needed
def test_a_model_of_the_program_refuses_what_does_not_fit(rng, tmp_path):
    learned = table(rng, 60)
    learned.to_csv(tmp_path / "learned.csv", index=False)
    fit = ["fit", tmp_path / "learned.csv", "--target", "target", "--exclude", "kind", "--model", "forest", "--trees", 5]
    program.run(*fit, "--out", tmp_path / "m")
    model = mondrian.load(tmp_path / "m")
    with pytest.raises(ValueError, match="no column 'height'"):
        model.predict(learned.drop(columns="height"))
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="row 1, column 'length' is missing"):
        model.predict(learned[:3].assign(length=[1.0, np.nan, 2.0]))
    with pytest.raises(ValueError, match="row 2, column 'colour' is missing"):
        model.predict(learned[:3].assign(colour=["red", "red", None]))
    with pytest.raises(ValueError, match="'length' contains a value"):
        model.predict(learned[:2].assign(length=["long", "short"]))
    # Whatever pandas makes of numbers and of gaps.
    nullable = learned.assign(grade=learned["grade"].astype("Int64"), colour=learned["colour"].astype("category"))
    assert np.array_equal(model.predict(nullable), model.predict(learned))
    nullable.loc[1, "grade"] = pd.NA
    with pytest.raises(ValueError, match="row 1, column 'grade' is missing"):
        model.predict(nullable)
    # Filled in where the program was told to.
    program.run(*fit, "--missing", "mean", "--out", tmp_path / "filled")
    filled = mondrian.load(tmp_path / "filled")
    holes = learned[:2].assign(length=[np.nan, 1.0])
    mean = learned[:2].assign(length=[learned["length"].mean(), 1.0])
    assert np.allclose(filled.predict(holes), filled.predict(mean))
    # Learning goes on in the program's units; a fit starts anew without them.
    more = table(rng, 20)
    model.partial_fit(more, more["target"])
    assert model._model.n_rows == 80
    model.forget(more, more["target"])
    path = model.path(more, more["target"])
    assert len(path.train) == len(path.validation) == len(path)
    plain = model.fit(learned[["length", "height"]], learned["target"])
    assert not hasattr(plain, "preparation_") and plain.n_features_in_ == 2


@program.needed
def test_forests_of_both_merge(rng, tmp_path):
    first, second = table(rng, 50), table(rng, 40)
    first.to_csv(tmp_path / "first.csv", index=False)
    second.to_csv(tmp_path / "second.csv", index=False)
    program.run("fit", tmp_path / "first.csv", "--target", "target", "--exclude", "kind", "--model", "forest", "--trees", 4, "--lifetime", 3, "--out", tmp_path / "a")
    program.run("fit", tmp_path / "second.csv", "--like", tmp_path / "a", "--out", tmp_path / "b")
    program.run("merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "both")
    merged = mondrian.load(tmp_path / "a").merge(mondrian.load(tmp_path / "b"))
    assert np.allclose(merged.predict(first), mondrian.load(tmp_path / "both").predict(first), rtol=1e-12)
    plain = mondrian.MondrianForestRegressor(4, lifetime=3.0).fit(merged.preparation_.transform(first)[:, :4], first["target"])
    with pytest.raises(ValueError, match="prepared differently"):
        merged.merge(plain)
