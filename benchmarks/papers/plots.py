"""What the pictures of the studies share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def panels(count: int, height: float = 3.2, share_y: bool = False) -> tuple[Any, Any]:
    """A figure with so many axes side by side, as an array."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    width = max(4.5, min(3.4 * count, 12.0))
    figure, axes = plt.subplots(1, count, figsize=(width, height), layout="constrained", sharey=share_y, squeeze=False)
    for axis in axes[0]:
        axis.grid(visible=True, alpha=0.3)
    return figure, np.asarray(axes[0])


def saved(figure: Any, path: Path) -> None:
    """Write the picture and forget it; minor ticks of logarithmic x-axes, which have little room, have no numbers."""
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    for axis in figure.axes:
        if axis.get_xscale() == "log":
            axis.xaxis.set_minor_formatter(NullFormatter())
    figure.savefig(path, dpi=100)
    plt.close(figure)
