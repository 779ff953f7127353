"""Optional companions: matplotlib for plots, pandas for frames."""

from __future__ import annotations


def axes_for(ax):
    """The axes to draw on; new ones where none are given."""
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
