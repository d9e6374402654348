"""Rows in chunks: all of them, in order, and in one chunk where chunks would save nothing."""

import subprocess
import sys

import pytest
import torch

from mpcs_torch.functional.inputs import arrays
from mpcs_torch.functional.inputs.arrays import EVERY_ROW, map_chunks
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.functional.soft.scores import SoftFBeta


@pytest.mark.parametrize("size", [1, 7, 70, 999])
def test_all_rows_come_in_order(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 3 * size)
    values = torch.arange(210.0).view(70, 3)
    found = map_chunks(lambda rows: 2 * values[rows], values)
    assert torch.equal(torch.cat(found), 2 * values)
    assert max(map(len, found)) <= max(size, 1)


def test_no_rows_are_one_chunk() -> None:
    assert map_chunks(lambda rows: rows, torch.zeros(0, 3)) == [EVERY_ROW]


def test_sums_of_soft_labels_by_bin_are_those_of_the_rows_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 2)
    measure = SoftFBeta(2)
    preds, target = torch.rand(2, 7, 2, generator=torch.Generator().manual_seed(0))
    codes = torch.arange(7) % 3
    found = measure.sums(measure.rows(preds, target), Bins(codes, 3))
    for code in range(3):
        rows = measure.rows(preds[codes == code], target[codes == code])
        torch.testing.assert_close(found[code], measure.sums(rows))


def test_gradients_need_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 1)
    values, other = torch.zeros(5, 1), torch.zeros(5, 1, requires_grad=True)
    assert map_chunks(lambda rows: rows, values, other) == [EVERY_ROW]
    with torch.no_grad():
        assert len(map_chunks(lambda rows: rows, values, other)) == 5


THREADS = """
import sys, threading, torch
from mpcs_torch import functional as F
torch.set_num_threads(int(sys.argv[1]))
preds, target = torch.randn(60_000, 100), torch.randint(0, 100, (60_000,))
for kernel in (F.brier_score, F.meta_pattern_concern_score, F.dangerous_errors, F.probability_accuracy):
    kernel(preds, target, num_classes=100)
later = []
thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
thread.start()
thread.join()
print(torch.get_num_threads(), later[0], threading.active_count())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 4, 16])
def test_large_calls_leave_the_threads_of_the_process_alone(number: int) -> None:
    command = [sys.executable, "-c", THREADS, str(number)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.split() == [str(number), str(number), "1"]
