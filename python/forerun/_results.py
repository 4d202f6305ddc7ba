"""Answers: JSON documents whose keys are attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar


class Record(Mapping[str, Any]):
    """A JSON object that does not change. Keys are attributes too; nested objects are records."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__["_values"] = {key: _wrapped(value) for key, value in values.items()}

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} does not change; cannot set {name!r}")

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}") from None

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def to_dict(self) -> dict[str, Any]:
        """The plain dictionaries and lists that the JSON document holds."""
        return {key: _plain(value) for key, value in self._values.items()}


class Forecast(Record):
    """What `predict` answers: seconds, tokens/s/GPU, GiB, each with its 90% interval."""

    step_time_s: float
    step_time_s_low: float
    step_time_s_high: float
    tokens_s_gpu: float
    tokens_s_gpu_low: float
    tokens_s_gpu_high: float
    tflops_gpu: float
    tflops_gpu_low: float
    tflops_gpu_high: float
    mfu: float
    mfu_low: float
    mfu_high: float
    peak_mem_gib: float
    peak_mem_gib_low: float
    peak_mem_gib_high: float
    reserved_gib: float
    allocated_gib: float
    active_gib: float
    device_gib: float
    resident_gib: float
    fits: bool
    p_fits: float
    breakdown_s: Record
    memory_gib: Record
    stages: list[Record]
    warnings: list[str]
    assumptions: list[Record]
    top_assumption: str
    input: Record

    def __repr__(self) -> str:
        fits = "fits" if self.fits else "does not fit"
        return (
            f"<Forecast {self.tokens_s_gpu:.0f} tokens/s/GPU"
            f" ({self.tokens_s_gpu_low:.0f}..{self.tokens_s_gpu_high:.0f}),"
            f" {self.step_time_s:.3f} s a step, MFU {self.mfu:.1%},"
            f" {self.peak_mem_gib:.1f} GiB, {fits}>"
        )


class Comparison(Record):
    """What `compare` answers: forecasts, and each later run against the first."""

    runs: list[Record]
    comparisons: list[Record]
    warnings: list[str]

    def __repr__(self) -> str:
        verdicts = "; ".join(c.verdict for c in self.comparisons)
        return f"<Comparison {verdicts}>"


T = TypeVar("T", bound=Record)


def from_json(document: dict[str, Any], kind: type[T]) -> T:
    return kind(document)


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
