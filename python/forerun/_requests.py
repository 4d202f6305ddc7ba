"""Questions: predict and compare."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from forerun import _core
from forerun._results import Comparison, Forecast, from_json

Run = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def predict(
    run: Run,
    *,
    set: Mapping[str, Any] | None = None,
    engine: str = "analytic",
    data: Iterable[str | os.PathLike[str]] = (),
) -> Forecast:
    """Forecast one run.

    Parameters
    ----------
    run : path or mapping
        A run file, or a mapping with the keys of one.
    set : mapping, optional
        Settings on top of the run by dotted key, ``{"parallelism.tp": 8}``.
    engine : {"analytic", "des"}
        The folded timeline, or the event queue. They agree.
    data : iterable of paths, optional
        Folders of your own data, searched first.

    Returns
    -------
    Forecast
        The keys of ``forerun predict --json`` as attributes.

    Raises
    ------
    InputError
        The run is wrong; the message says where, what was found and what is allowed.
    Unsupported
        The run is legal and not modelled; the message names what is missing.
    """
    answer = _core.predict(_source(run), _sets(set), engine, _folders(data))
    return from_json(json.loads(answer), Forecast)


def compare(
    *runs: Run,
    set: Mapping[str, Any] | None = None,
    engine: str = "analytic",
    data: Iterable[str | os.PathLike[str]] = (),
) -> Comparison:
    """Compare two or more runs; the others with the first.

    Parameters are those of `predict`; ``set`` applies to every run.

    Returns
    -------
    Comparison
        The keys of ``forerun compare --json`` as attributes.
    """
    if len(runs) == 1 and not isinstance(runs[0], (str, os.PathLike, Mapping)):
        runs = tuple(runs[0])
    if len(runs) < 2:
        raise TypeError("compare wants at least two runs")
    sources = [_source(run, f"<mapping {i}>") for i, run in enumerate(runs, 1)]
    answer = _core.compare(sources, _sets(set), engine, _folders(data))
    return from_json(json.loads(answer), Comparison)


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy, and paths, as JSON knows them."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a run cannot hold {value!r} ({type(value).__name__})")


def _text(value: Any) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _source(run: Run, name: str = "<mapping>") -> _core.RunSource:
    if isinstance(run, Mapping):
        return _core.RunSource(name, False, _text(dict(run)))
    if isinstance(run, (str, os.PathLike)):
        return _core.RunSource(os.fspath(run), True, "")
    raise TypeError(f"a path or a mapping is wanted, not {type(run).__name__}")


def _sets(settings: Mapping[str, Any] | None) -> list[str]:
    return [f"{key}={_text(value)}" for key, value in (settings or {}).items()]


def _folders(data: Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    return [os.fspath(folder) for folder in data]
