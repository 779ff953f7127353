"""Dates in frames: days since 1970-01-01 for every estimator, and as the program takes them for its models."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import program
import pytest

import mondrian
from mondrian._dates import with_days

DAYS = np.arange(15_000.0, 15_200.0, 2.5)


def frames():
    """The same dates, with one missing, as frames have them."""
    stamps = pd.to_datetime("1970-01-01") + pd.to_timedelta(DAYS, unit="D")
    stamps = stamps.where(np.arange(len(DAYS)) != 7)
    x = np.sin(DAYS)
    yield "pandas", pd.DataFrame({"when": stamps, "x": x})
    yield "pandas, other unit", pd.DataFrame({"when": stamps.astype("datetime64[s]"), "x": x})
    yield "pandas with a zone", pd.DataFrame({"when": stamps.tz_localize("UTC").tz_convert("Asia/Tokyo"), "x": x})
    yield "objects of pandas", pd.DataFrame({"when": pd.Series(list(stamps.to_pydatetime()), dtype=object).where(stamps.notna(), None), "x": x})
    cells = [None if pd.isna(stamp) else stamp.to_pydatetime() for stamp in stamps]
    yield "polars", pl.DataFrame({"when": cells, "x": x})
    yield "polars with a zone", pl.DataFrame({"when": cells, "x": x}).with_columns(pl.col("when").dt.replace_time_zone("UTC"))


@pytest.mark.parametrize("name, frame", list(frames()), ids=lambda value: value if isinstance(value, str) else "")
def test_dates_are_days(name, frame):
    found = with_days(frame)
    expected = np.where(np.arange(len(DAYS)) == 7, np.nan, DAYS)
    assert np.array_equal(np.asarray(found["when"], dtype=float), expected, equal_nan=True)
    assert list(found.columns) == ["when", "x"] and np.array_equal(np.asarray(found["x"]), np.sin(DAYS))
    plain = np.c_[expected, np.sin(DAYS)]
    model = mondrian.LaplaceKernelRidge(random_state=0)
    y = np.cos(DAYS / 40)
    assert np.array_equal(model.fit(frame, y).predict(frame), mondrian.LaplaceKernelRidge(random_state=0).fit(plain, y).predict(plain))
    full = frame[8:] if isinstance(frame, pl.DataFrame) else frame.iloc[8:]
    forest = mondrian.MondrianForestRegressor(3, random_state=0)
    assert np.array_equal(forest.fit(full, y[8:]).predict(full), forest.fit(plain[8:], y[8:]).predict(plain[8:]))


def test_dates_of_polars_without_a_time():
    dates = [datetime.date(1970, 1, 1) + datetime.timedelta(days=int(day)) for day in DAYS[::2]]
    assert with_days(pl.DataFrame({"when": dates}))["when"].to_list() == DAYS[::2].tolist()
    assert with_days(pd.DataFrame({"when": dates}))["when"].tolist() == DAYS[::2].tolist()
    table = pd.DataFrame({"x": [1.0], "text": ["2024-01-01"]})
    assert with_days(table) is table, "texts are no dates"


@program.needed
def test_the_programs_models_take_dates_as_it_does(tmp_path):
    frame = pd.DataFrame({"when": pd.to_datetime("1970-01-01") + pd.to_timedelta(DAYS, unit="D"), "x": np.sin(DAYS)})
    frame["y"] = np.cos(DAYS / 40)
    table, fitted = tmp_path / "t.csv", tmp_path / "m"
    frame.to_csv(table, index=False)
    program.run("fit", table, "--target", "y", "--model", "forest", "--trees", 5, "--out", fitted)
    program.run("predict", fitted, table, "--out", tmp_path / "p.csv")
    said = pd.read_csv(tmp_path / "p.csv")["prediction"].to_numpy()
    model = mondrian.load(fitted)
    texts = pd.read_csv(table)
    objects = frame.assign(when=frame["when"].dt.to_pydatetime().tolist()).astype({"when": object})
    for given in (frame, texts, objects, pl.from_pandas(frame)):
        assert np.array_equal(model.predict(given), said)
    with pytest.raises(ValueError, match="'when' contains a value that is not a date"):
        model.predict(frame.assign(when="soon"))
    with pytest.raises(ValueError, match="'x' contains a value that is not a number"):
        model.predict(frame.assign(x=frame["when"]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", [mondrian.MondrianForestRegressor, mondrian.MondrianGridRidge, mondrian.LaplaceKernelRidge])
def test_text_in_a_frame_is_named_with_its_column(library, estimator):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"x": [0.1, 0.2, 0.3, 0.4], "number": ["1", "2", "3", "4"], "town": ["1", "Bonn", "2", "3"]})
    with pytest.raises(ValueError, match="column 'town' of X holds text such as 'Bonn'"):
        estimator().fit(frame, [1.0, 2.0, 3.0, 4.0])
