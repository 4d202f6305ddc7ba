"""Forecasts of Llama-3.1-8B on 8 and 128 H100 beside two published measurements of each.

    PYTHONPATH=build/python /usr/bin/python3 examples/01-first-forecast/demo.py

The runs are FSDP2 with selective recompute, eager, compiled, and compiled with float8. They were
published twice: in the TorchTitan paper (arXiv 2410.06511, rows ttv1-*) and in torchtitan's
benchmarks of December 2024 (rows tt-202412-*). No forecast reads a measured number.
"""

import csv
import pathlib

import forerun as fr

HERE = pathlib.Path(__file__).resolve().parent
RUNS = HERE.parents[1] / "calibration" / "runs" / "torchtitan.csv"

VARIANTS = {
    "eager": {"execution.compile": False},
    "compiled": {},
    "compiled, float8": {"training.precision": "fp8-tensorwise"},
}
# Rows of the table of published runs, by GPUs and variant: December 2024, paper.
MEASURED = {
    (8, "eager"): ("tt-202412-8b-8g-fsdp-eager", "ttv1-8b-8g-eager"),
    (8, "compiled"): ("tt-202412-8b-8g-fsdp-compile", "ttv1-8b-8g-compile"),
    (8, "compiled, float8"): ("tt-202412-8b-8g-fsdp-compile-fp8", "ttv1-8b-8g-compile-fp8"),
    (128, "eager"): ("tt-202412-8b-128g-fsdp-eager", "ttv1-8b-128g-eager"),
    (128, "compiled"): ("tt-202412-8b-128g-fsdp-compile", "ttv1-8b-128g-compile"),
    (128, "compiled, float8"): ("tt-202412-8b-128g-fsdp-compile-fp8", "ttv1-8b-128g-compile-fp8"),
}


def forecast(gpus: int, settings: dict) -> fr.Forecast:
    """The example's run on this many GPUs, two sequences each."""
    scale = {
        "cluster.nodes": gpus // 8,
        "parallelism.dp_shard": gpus,
        "training.global_batch": 2 * gpus,
    }
    return fr.predict(HERE / "run.yaml", set={**scale, **settings})


def against(predicted: float, measured: str) -> str:
    return f"{float(measured):7.0f} {predicted / float(measured) - 1:+7.1%}"


def memory_against(predicted: float, measured: str) -> str:
    return f"{float(measured):6.1f} {predicted / float(measured) - 1:+7.1%}"


def main() -> None:
    with RUNS.open(newline="") as table:
        rows = {row["id"]: row for row in csv.DictReader(table)}
    print("Llama-3.1-8B, sequence 8192, 2 sequences a GPU, FSDP2, selective recompute, H100 95 GB\n")
    print(f"{'':24}{'tokens/s/GPU':^54}    {'peak reserved, GiB':^38}")
    print(
        f"{'GPUs':>4}  {'':18}{'forecast':>8} {'90% interval':>14}  {'Dec 2024':>15} {'paper':>15}"
        f"    {'forecast':>8} {'Dec 2024':>14} {'paper':>14}"
    )
    for (gpus, variant), (december, paper) in MEASURED.items():
        f = forecast(gpus, VARIANTS[variant])
        interval = f"{f.tokens_s_gpu_low:.0f}..{f.tokens_s_gpu_high:.0f}"
        speed = [against(f.tokens_s_gpu, rows[i]["tokens_s_gpu"]) for i in (december, paper)]
        memory = [memory_against(f.peak_mem_gib, rows[i]["peak_mem_gib"]) for i in (december, paper)]
        print(
            f"{gpus:4}  {variant:18}{f.tokens_s_gpu:8.0f} {interval:>14}  {speed[0]} {speed[1]}"
            f"    {f.peak_mem_gib:8.1f} {memory[0]} {memory[1]}"
        )
    print("\nBeside each measurement: how far the forecast is from it.")


if __name__ == "__main__":
    main()
