"""Which ranks form each group, and the slowest link that each group crosses."""

import itertools

import pytest

AXES = ["pp", "dp_replicate", "dp_shard", "cp", "tp"]
DEGREES = {"pp": 2, "dp_replicate": 1, "dp_shard": 4, "cp": 2, "tp": 8}  # of the example's 128 GPUs
PLAN = ["--set", "parallelism={pp: 2, dp_shard: 4, cp: 2, tp: 8}", "--set", "training.global_batch=32"]
PER_NODE, PER_RACK = 8, 16  # grand-teton-h100-95gb: 8 GPUs a node, 2 nodes a rack


def mesh(forerun, example, *arguments):
    answer = forerun("mesh", example, "--json", *arguments)
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.json()


def members_of_rank_0(order, axes):
    """From the definition: all coordinates of these axes, the others zero; the last axis of the
    order has stride 1."""
    strides, stride = {}, 1
    for axis in reversed(order):
        strides[axis] = stride
        stride *= DEGREES[axis]
    ranges = [[i * strides[axis] for i in range(DEGREES[axis])] for axis in axes]
    return sorted(sum(offsets) for offsets in itertools.product(*ranges))


@pytest.mark.parametrize(
    "order",
    [AXES, AXES[::-1], ["tp", "pp", "dp_shard", "cp", "dp_replicate"],
     ["dp_shard", "pp", "cp", "tp", "dp_replicate"], ["cp", "dp_shard", "tp", "dp_replicate", "pp"]],
    ids=" ".join,
)
def test_groups_of_a_mesh_order(forerun, example, order):
    m = mesh(forerun, example, *PLAN, "--set", f"parallelism.mesh_order=[{', '.join(order)}]")
    assert m["gpus"] == 128
    assert m["mesh"] == [f"{axis} {DEGREES[axis]}" for axis in order]
    groups = {group["name"]: group for group in m["groups"]}
    assert set(groups) == {"pp", "dp_shard", "cp", "tp", "dp_shard x cp (parameters are cut over both)"}
    for name, group in groups.items():
        axes = ["dp_shard", "cp"] if " x " in name else [name]
        members = members_of_rank_0(order, axes)
        assert group["members_of_rank_0"] == members[:16]
        assert group["ranks"] == len(members)
        assert group["groups"] == 128 // len(members)
        nodes = {rank // PER_NODE for rank in members}
        racks = {rank // PER_RACK for rank in members}
        assert group["nodes"] == len(nodes)
        assert group["racks"] == len(racks)
        assert group["ranks_per_node"] == len(members) // len(nodes)
        slowest = "node" if len(nodes) == 1 else "rack" if len(racks) == 1 else "cluster"
        assert group["slowest_tier"] == slowest
        # 450 GB/s of NVLink in one direction; 400 Gb/s of NIC a GPU.
        assert group["bandwidth_gb_s_gpu"] == (450 if slowest == "node" else 50)


def test_tp_across_nodes_is_warned_of(forerun, example):
    order = "parallelism.mesh_order=[tp, pp, dp_replicate, dp_shard, cp]"
    assert any("tp" in w and "cross" in w for w in mesh(forerun, example, *PLAN, "--set", order)["warnings"])
    assert not any("cross" in w for w in mesh(forerun, example, *PLAN)["warnings"])


def test_groups_of_one_rank_are_left_out(forerun, example):
    assert [group["name"] for group in mesh(forerun, example)["groups"]] == ["dp_shard"]


def test_text(forerun, example):
    text = forerun("mesh", example, *PLAN).out
    assert text.startswith("128 GPUs, outermost first: pp 2 > dp_replicate 1 > dp_shard 4 > cp 2 > tp 8")
    assert "tp: 16 groups of 8 ranks\n  ranks of the first: 0 1 2 3 4 5 6 7\n" in text
    assert "slowest link: NVLink inside a node, 450 GB/s" in text
    assert "slowest link: spine between racks or pods, 50 GB/s" in text


def test_a_plan_that_is_not_modelled_has_a_mesh(forerun, example):
    m = mesh(forerun, example, "--set", "parallelism={dp_shard: 16, dp_replicate: 8}")
    assert {group["name"] for group in m["groups"]} == {"dp_replicate", "dp_shard"}


def test_a_plan_that_is_wrong_has_none(forerun, example):
    answer = forerun("mesh", example, "--set", "parallelism={dp_shard: 16, tp: 3}")
    assert (answer.code, answer.out) == (2, "")
    assert "48 ranks on 128 GPUs" in answer.err
