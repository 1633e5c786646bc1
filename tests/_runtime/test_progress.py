from __future__ import annotations

import io
import time
from contextlib import redirect_stderr

import pytest

from gpssl._runtime.progress import Progress, announce, shown_by


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def progress_on(stream: io.StringIO, task: str, total: int) -> Progress:
    """Progress that is shown on this stream, as if it were standard error."""
    with redirect_stderr(stream):
        return Progress(task, total, enabled=True)


def test_line_says_what_is_done_how_fast_and_how_long_still(clock: list[float]) -> None:
    stream = io.StringIO()
    line = progress_on(stream, "moments", 1000)
    clock[0] = 4.0
    line.advance(400)
    assert "moments: 400 of 1,000 rows, 100 rows/s, 6 s left" in stream.getvalue()


def test_log_gets_a_line_every_two_seconds_and_a_terminal_ten_a_second(clock: list[float]) -> None:
    log, terminal = io.StringIO(), Terminal()
    lines = [progress_on(stream, "pass", 100) for stream in (log, terminal)]
    for _ in range(100):
        clock[0] += 0.051
        for line in lines:
            line.advance(1)
    assert log.getvalue().count("\n") == 2
    assert terminal.getvalue().count("\r") == 50


def test_silent_unless_enabled(capsys: pytest.CaptureFixture[str]) -> None:
    line = Progress("pass", 10, enabled=False)
    line.advance(10)
    line.finish()
    announce("done", enabled=False)
    assert capsys.readouterr() == ("", "")


def test_display_is_told_instead_of_the_terminal(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, int, bool]] = []
    with shown_by(lambda progress: seen.append((progress.task, progress.done, progress.finished))):
        counted = Progress("pass", 30, enabled=False)
        announce("a step", enabled=True)
        for _ in range(3):
            clock[0] += 0.2
            counted.advance(10)
        counted.finish()
    assert seen == [("pass", 10, False), ("pass", 20, False), ("pass", 30, False), ("pass", 30, True)]
    outside = Progress("pass", 30, enabled=False)
    outside.advance(30)
    outside.finish()
    assert len(seen) == 4
    assert capsys.readouterr() == ("", "")
