"""Pictures and tables: SVG by the core; plots and frames by matplotlib and pandas, which are optional."""

from __future__ import annotations

import html

from ._files import write_whole


def axes_for(ax):
    """The axes to draw on; new ones if none are given."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'mondrian[plot]'") from error
    return plt.subplots(layout="constrained")[1]


def frame_of(columns):
    """A pandas frame of these columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("frames need pandas: pip install 'mondrian[frames]'") from error
    return pd.DataFrame(columns)


def written(svg, path):
    """The text of a picture, also written to a file if one is given."""
    if path is not None:
        write_whole(path, svg.encode())
    return svg


def html_table(rows, header=None):
    """A table for notebooks; every cell is escaped."""

    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    head = "" if header is None else f"<thead>{line(header, 'th')}</thead>"
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"
