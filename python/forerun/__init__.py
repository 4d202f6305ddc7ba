"""Forecasts of training runs before a GPU-hour is spent.

>>> import forerun as fr
>>> f = fr.predict("run.yaml")                      # or a mapping with the same keys
>>> f.tokens_s_gpu, f.peak_mem_gib, f.fits
>>> fr.compare("a.yaml", "b.yaml").comparisons[0].verdict

The numbers and the errors are those of the command line: the same engines answer both. Times are
seconds, sizes GiB, rates as their names say; all are plain floats.
"""

from forerun._core import InputError, Unsupported
from forerun._requests import compare, predict
from forerun._results import Comparison, Forecast, Record
from forerun._version import __version__

__all__ = [
    "Comparison",
    "Forecast",
    "InputError",
    "Record",
    "Unsupported",
    "__version__",
    "compare",
    "predict",
]
