from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import os, signal, threading
from gpssl._runtime.signals import end_when_stopped, held_back, ignore_stopping

def end(number):
    print("end", number, flush=True)
    os._exit(128 + number)

def send(number):
    signal.raise_signal(number)
"""


def lines_of(code: str, *, ignoring: int | None = None) -> tuple[int, list[str]]:
    """The exit code of a process that runs this, and what it prints."""
    before = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # whoever started the tests may ignore it, as nohup does
    before += "" if ignoring is None else f"signal.signal({ignoring}, signal.SIG_IGN)\n"
    ended = subprocess.run([sys.executable, "-c", before + HEAD + textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_process_at_once(number: int) -> None:
    code = f"""
    end_when_stopped(end)
    class Removed:
        def __del__(self):
            send({int(number)})
    removed = Removed()
    del removed
    print("it goes on")
    """
    assert lines_of(code) == (128 + number, [f"end {int(number)}"])


def test_signals_wait_until_the_steps_that_belong_together_are_taken() -> None:
    code = """
    end_when_stopped(end)
    try:
        with held_back():
            with held_back():
                send(signal.SIGTERM)
                print("first", flush=True)
            print("second", flush=True)
            raise ValueError
    except ValueError:
        print("it goes on", flush=True)
    """
    assert lines_of(code) == (143, ["first", "second", "end 15"])


def test_blocks_in_other_threads_hold_nothing_back() -> None:
    code = """
    end_when_stopped(end)
    entered, leave = threading.Event(), threading.Event()
    def work():
        with held_back():
            entered.set()
            leave.wait()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    entered.wait()
    send(signal.SIGTERM)
    """
    assert lines_of(code) == (143, ["end 15"])


def test_signals_that_are_ignored_or_handled_by_others_are_left_to_them() -> None:
    code = """
    signal.signal(signal.SIGTERM, lambda *_: print("mine", flush=True))
    end_when_stopped(end)
    send(signal.SIGHUP)
    send(signal.SIGTERM)
    ignore_stopping()
    send(signal.SIGHUP)
    send(signal.SIGTERM)
    """
    assert lines_of(code, ignoring=signal.SIGHUP) == (0, ["mine", "mine"])


def test_nothing_stops_what_is_about_to_end() -> None:
    code = """
    end_when_stopped(end)
    ignore_stopping()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        send(number)
    print("done")
    """
    assert lines_of(code) == (0, ["done"])
