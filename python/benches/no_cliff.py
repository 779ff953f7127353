"""Test error against the number of training rows, of the tuned Laplace kernel, boosting and extra trees.

    MONDRIAN_DATA=folder python benches/no_cliff.py --record FILE [--sizes 5000,10000,...] [--models NAME,...] [SET ...]
    python benches/no_cliff.py --record FILE --picture ../docs/pictures/no_cliff.svg

The first ROWS training rows of the split of laplace_table.py, and its first 20 000 test rows; ``random_state=0`` and no other parameter
set. Prints one Markdown row per run, appends it to the JSON file and skips what that holds. ``--picture`` draws the file, prints its table and
runs nothing."""

import argparse
import time

import numpy as np
from laplace_table import keep, load, read
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

SETS = ("nycflights13", "gebco_altitude")
SIZES = (5000, 10000, 20000, 40000, 80000, 160000)
OURS = "Laplace kernel"
COLOURS = {OURS: "#b3261e", "boosting": "#3567a5", "extra trees": "#3a7d44"}
MOST_TEST_ROWS = 20000


def model_of(title):
    if title == OURS:
        import mondrian

        return mondrian.LaplaceKernelRidge(random_state=0, n_jobs=-1)
    if title == "boosting":
        return HistGradientBoostingRegressor(random_state=0)
    return ExtraTreesRegressor(n_estimators=300, n_jobs=-1, random_state=0)


def run(name, title, size, rows):
    X, y, X_test, y_test = rows
    model = model_of(title)
    start = time.perf_counter()
    model.fit(X[:size], y[:size])
    seconds = time.perf_counter() - start
    off = model.predict(X_test[:MOST_TEST_ROWS]) - y_test[:MOST_TEST_ROWS]
    error = float(np.sqrt(np.mean(off**2)) / y.std())
    record = {"set": name, "model": title, "seed": size, "error": error, "seconds": round(seconds, 1)}
    return record | ({"solver": model.solver_, "leave_one_out": model.loo_rmse_ / y.std()} if title == OURS else {})


def table(records, sets):
    print("| set | model | " + " | ".join(f"{size:,}".replace(",", " ") for size in SIZES) + " |\n| --- | --- |" + " ---: |" * len(SIZES))
    for name in sets:
        for title in COLOURS:
            errors = {r["seed"]: r["error"] for r in records if (r["set"], r["model"]) == (name, title)}
            print(f"| {name} | {title} | " + " | ".join(f"{errors[s]:.4f}" if s in errors else "–" for s in SIZES) + " |")


def picture(records, sets):
    """One panel per set, both axes logarithmic."""
    width, height, left, top, panel = 360, 300, 60, 34, (250, 210)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * len(sets)} {height}" font-family="sans-serif" font-size="12">']
    out.append('<rect width="100%" height="100%" fill="white"/>')
    for k, name in enumerate(sets):
        own = [r for r in records if r["set"] == name]
        low, high = (np.log(f(r["error"] for r in own)) for f in (min, max))
        low, high = low - 0.08 * (high - low), high + 0.08 * (high - low)
        x0 = k * width + left
        x = lambda size, x0=x0: x0 + panel[0] * np.log(size / SIZES[0]) / np.log(SIZES[-1] / SIZES[0])  # noqa: E731
        y = lambda error, low=low, high=high: top + panel[1] * (high - np.log(error)) / (high - low)  # noqa: E731
        out.append(f'<text x="{x0}" y="20" font-weight="bold">{name}: RMSE/sd</text>')
        out.append(f'<path d="M{x0} {top}V{top + panel[1]}H{x0 + panel[0]}" fill="none" stroke="#444"/>')
        for size in SIZES:
            out.append(f'<text x="{x(size):.1f}" y="{top + panel[1] + 16}" text-anchor="middle" font-size="10">{size // 1000}k</text>')
        for error in np.exp(np.linspace(low, high, 5)):
            out.append(f'<path d="M{x0} {y(error):.1f}h{panel[0]}" stroke="#ddd"/>')
            out.append(f'<text x="{x0 - 5}" y="{y(error) + 4:.1f}" text-anchor="end" font-size="10">{error:.3f}</text>')
        for n, (title, colour) in enumerate(COLOURS.items()):
            points = sorted((r["seed"], r["error"]) for r in own if r["model"] == title)
            path = " ".join(f"{x(size):.1f},{y(error):.1f}" for size, error in points)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
            out.extend(f'<circle cx="{x(size):.1f}" cy="{y(error):.1f}" r="3" fill="{colour}"/>' for size, error in points)
            if k == 0:
                out.append(f'<text x="{x0 + 90 * n}" y="{height - 10}" fill="{colour}">{title}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--sizes", default=",".join(str(size) for size in SIZES))
    parser.add_argument("--models", default=",".join(COLOURS))
    parser.add_argument("--record", required=True, help="a JSON file that runs are appended to")
    parser.add_argument("--picture", help="an SVG file to draw")
    arguments = parser.parse_args()
    if arguments.picture:
        records = read(arguments.record)
        with open(arguments.picture, "w") as file:
            file.write(picture(records, arguments.sets))
        return table(records, arguments.sets)
    for name in arguments.sets:
        rows = load(name)
        for size in (int(size) for size in arguments.sizes.split(",")):
            for title in arguments.models.split(","):
                if any((r["set"], r["model"], r["seed"]) == (name, title, size) for r in read(arguments.record)):
                    continue
                record = run(name, title, size, rows)
                keep(arguments.record, record)
                extra = f"; {record['solver']}, leave-one-out {record['leave_one_out']:.4f}" if title == OURS else ""
                print(f"| {name} | {title} | {size} | {record['error']:.4f}{extra} | {record['seconds']:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
