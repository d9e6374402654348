"""The page of benchmarks says which code it has measured."""

from tests.benchmarks.bench import TABLE, kernel_digests, measured_digests


def test_the_page_has_measured_the_kernels_as_they_are() -> None:
    measured, now = measured_digests(TABLE.read_text(encoding="utf-8")), kernel_digests()
    changed = sorted(name for name in {*measured, *now} if measured.get(name) != now.get(name))
    assert not changed, f"run make bench: {', '.join(changed)} changed since"
