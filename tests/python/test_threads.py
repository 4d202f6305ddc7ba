"""The interpreter is free while a forecast is computed."""

import threading
import time

import forerun as fr

# The event engine plays every microbatch: some tenths of a second.
SLOW = {"parallelism": {"dp_shard": 16, "pp": 8}, "training.micro_batch": 1, "training.global_batch": 16384}


def test_another_thread_goes_on(example):
    done = threading.Event()
    answers = []

    def work():
        answers.append(fr.predict(example, set=SLOW, engine="des"))
        done.set()

    worker = threading.Thread(target=work)
    begin = last = time.monotonic()
    worker.start()
    longest, turns = 0.0, 0
    while not done.is_set():
        time.sleep(0.001)
        now = time.monotonic()
        longest, last, turns = max(longest, now - last), now, turns + 1
    worker.join()
    took = time.monotonic() - begin
    assert answers[0].engine == "des"
    assert turns > 10
    assert longest < took / 2  # a held lock would stop this thread for all of it


def test_forecasts_in_many_threads_are_those_of_one(example):
    sets = [{"parallelism.dp_shard": 128 // tp, "parallelism.tp": tp, "training.global_batch": 2 * 128 // tp}
            for tp in (1, 2, 4, 8)] * 4
    alone = [fr.predict(example, set=s) for s in sets]
    answers = [None] * len(sets)

    def work(i):
        answers[i] = fr.predict(example, set=sets[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(sets))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == alone
