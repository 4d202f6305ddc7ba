"""Answers: keys are attributes, all the way down, and nothing changes them."""

import collections.abc
import copy
import json
import pickle

import forerun as fr
import pytest


@pytest.fixture
def forecast(example):
    return fr.predict(example)


def test_keys_are_attributes(document, forecast, example):
    def same(record, plain):
        assert isinstance(record, fr.Record)
        assert list(record) == list(plain) and len(record) == len(plain)
        for key, value in plain.items():
            for found in (record[key], getattr(record, key)):
                if isinstance(value, dict):
                    same(found, value)
                elif isinstance(value, list) and value and isinstance(value[0], dict):
                    for one, other in zip(found, value, strict=True):
                        same(one, other)
                else:
                    assert found == value and type(found) is type(value)
            assert key in dir(record)

    same(forecast, document("predict", example))


def test_every_annotation_is_a_key(forecast):
    assert set(fr.Forecast.__annotations__) <= set(forecast)
    assert set(fr.Comparison.__annotations__) <= set(fr.compare(forecast_run(), forecast_run()))


def forecast_run():
    return {
        "cluster": {"name": "dgx-h100", "nodes": 1},
        "model": "llama3-8b",
        "training": {"sequence_length": 4096, "micro_batch": 1, "global_batch": 8},
    }


def test_a_record_is_a_mapping(forecast):
    assert isinstance(forecast, collections.abc.Mapping)
    assert forecast.breakdown_s.gemm == forecast["breakdown_s"]["gemm"] == forecast.breakdown_s.get("gemm")
    assert forecast.get("nothing") is None
    assert "mfu" in forecast and "nothing" not in forecast
    assert sum(forecast.breakdown_s.values()) == pytest.approx(forecast.step_time_s, rel=1e-9)
    assert json.loads(json.dumps(forecast.to_dict())) == forecast.to_dict()
    assert type(forecast.to_dict()["stages"][0]) is dict


def test_what_is_not_there(forecast):
    with pytest.raises(AttributeError, match="Forecast has no 'tokens'"):
        forecast.tokens
    with pytest.raises(KeyError):
        forecast["tokens"]
    assert not hasattr(forecast, "__array__")


def test_a_record_does_not_change(forecast):
    before = forecast.mfu
    with pytest.raises(AttributeError, match="does not change"):
        forecast.mfu = 1.0
    with pytest.raises(TypeError):
        forecast["mfu"] = 1.0
    with pytest.raises(AttributeError):
        forecast.breakdown_s.gemm = 0
    plain = forecast.to_dict()
    plain["stages"].clear()
    plain["breakdown_s"]["gemm"] = 0
    assert forecast.mfu == before
    assert forecast.stages and forecast.breakdown_s.gemm > 0


def test_copies_are_equal(forecast, example):
    assert forecast == fr.predict(example)
    assert forecast != fr.predict(example, set={"execution.compile": False})
    for other in (copy.copy(forecast), copy.deepcopy(forecast), pickle.loads(pickle.dumps(forecast))):
        assert other == forecast and type(other) is fr.Forecast
        assert other.breakdown_s.gemm == forecast.breakdown_s.gemm


def test_a_record_made_by_hand():
    record = fr.Record({"a": {"b": [1, {"c": None}]}, "items": 2})
    assert record.a.b[1].c is None
    assert record["items"] == 2  # a method of mappings has that name
    assert repr(record) == "Record({'a': {'b': [1, {'c': None}]}, 'items': 2})"


def test_representations(forecast):
    text = repr(forecast)
    assert text.startswith(f"<Forecast {forecast.tokens_s_gpu:.0f} tokens/s/GPU (")
    assert "fits" in text and "does not fit" not in text
    assert "does not fit" in repr(fr.predict(forecast_run(), set={"model": "llama3-405b"}))
    comparison = fr.compare(forecast_run(), forecast_run())
    assert repr(comparison) == f"<Comparison {comparison.comparisons[0].verdict}>"
