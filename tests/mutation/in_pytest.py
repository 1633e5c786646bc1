"""A plugin of pytest that collects the tests once and runs every mutant in a fork, with only the tests that reach it.

The fork gets the mistake in two ways: the code of the function is exchanged in place, and the file in the copy of `src` that this process
imports from has it too, for modules that are imported later and for processes that a test starts. Constants of a module are defined anew in
place; what else an import runs, such as the body of a class, needs a new process.
A test reaches a line when it, or a fixture that it uses, runs the line. Processor time is limited, not time: the machine may be busy.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import gc
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import coverage
import pytest
from mutations import Mutant, constants_of

SLACK = 5.0
"""Seconds of processor time beyond three times what the tests take, for what is imported."""

ANNOTATIONS = __future__.annotations.compiler_flag
"""Annotations are not evaluated."""

NOT_EXCHANGED = 3
"""Exit code of a fork in which the mutant could not be brought in."""


class MutantRunner:
    """Runs the mutants of a plan in the place of the tests."""

    def __init__(self, source: Path, mutants: list[Mutant], reach_file: Path, report: Callable[[Mutant, str], None]) -> None:
        self.source = source
        self.mutants = mutants
        self.reach_file = reach_file
        self.report = report
        self.coverage: coverage.Coverage | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests once to see what they reach, then some of them for every mutant."""
        items = {item.nodeid: item for item in session.items}
        if not self.reach_file.exists() and in_a_fork(lambda: self._measure(session, list(items.values())), 3600) != "survived":
            raise pytest.UsageError("the tests fail without any mutant")
        measured = json.loads(self.reach_file.read_text())
        seconds: dict[str, float] = measured["seconds"]
        for mutant in self.mutants:
            names = tests_that_reach(mutant, measured["reach"], seconds, self.source)
            limit = 3 * sum(seconds[name] for name in names) + SLACK
            self.report(mutant, self._outcome(session, mutant, [items[name] for name in names], limit))
        return True

    def _outcome(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item], limit: float) -> str:
        if not items:
            return "not reached"
        path = self.source / mutant.path
        before = path.read_text()
        after = mutant.applied_to(before)
        path.write_text(after)
        try:
            if mutant.function or mutant.names:
                outcome = in_a_fork(lambda: bring_in(mutant, path, after) and _pass(session, items), limit)
                if outcome != "not exchanged":
                    return outcome
            return in_a_fork(lambda: _in_a_new_process(items), limit + SLACK)
        finally:
            path.write_text(before)

    def _measure(self, session: pytest.Session, items: list[pytest.Item]) -> bool:
        self.coverage = coverage.Coverage(data_file=None, source=[str(self.source)], config_file=False)
        self.coverage.start()
        seconds = {}
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.coverage.switch_context(item.nodeid)
            begin = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = time.process_time() - begin
            if session.testsfailed:
                print(f"{item.nodeid} fails without any mutant", file=sys.__stderr__)
                return False
        self.coverage.stop()
        data = self.coverage.get_data()
        users = _users_of_fixtures(items)
        reach = {
            os.path.relpath(file, self.source): {
                line: sorted({name for context in contexts for name in users.get(context, [context])})
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        self.reach_file.write_text(json.dumps({"seconds": seconds, "reach": reach}))
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
        """Count what a shared fixture runs for each test that uses it, not for the first one alone."""
        if self.coverage is None:
            yield
            return
        self.coverage.switch_context(_name_of_fixture(fixturedef))
        yield
        self.coverage.switch_context(request._pyfuncitem.nodeid)


def _name_of_fixture(fixture: pytest.FixtureDef[Any]) -> str:
    return f"fixture {fixture.argname} of {fixture.baseid}"


def _users_of_fixtures(items: list[pytest.Item]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for item in items:
        info = getattr(item, "_fixtureinfo", None)
        for fixtures in info.name2fixturedefs.values() if info else ():
            for fixture in fixtures:
                users.setdefault(_name_of_fixture(fixture), []).append(item.nodeid)
    return users


def tests_that_reach(mutant: Mutant, reach: dict[str, dict[str, list[str]]], seconds: dict[str, float], source: Path) -> list[str]:
    """Return the tests that run the statement or, for a constant, name it or run a line that does; for other imports all. Quick first."""
    lines = reach.get(mutant.path, {})
    found = (
        {name for line in range(mutant.lines[0], mutant.lines[1] + 1) for name in lines.get(str(line), ())} if mutant.function else set()
    )
    constants = set().union(*map(constants_of, statements_that_follow((source / mutant.path).read_text(), _changed(mutant))))
    if constants:
        named = re.compile(rf"\b({'|'.join(sorted(constants))})\b")
        files = {path: (source / path).read_text().splitlines() for path in reach}
        using = [(path, str(i)) for path, text in files.items() for i, line in enumerate(text, start=1) if named.search(line)]
        found |= {name for path, line in using for name in reach[path].get(line, ())}
        naming = {file for file in {name.split("::")[0] for name in seconds} if named.search(Path(file).read_text())}
        found |= {name for name in seconds if name.split("::")[0] in naming}
    elif mutant.function is None:
        found = set(seconds)
    return sorted(found & set(seconds), key=lambda name: seconds[name])


def _changed(mutant: Mutant) -> set[str]:
    """Return the names of the module that a mutant changes: constants, or a function, which an import may call."""
    return set(mutant.names) if mutant.function is None else {mutant.function[0].split(".")[0]}


def statements_that_follow(source: str, changed: set[str]) -> list[ast.stmt]:
    """Return the assignments of a module that define these names, or follow from them, directly or through functions of the module."""
    found = []
    for statement in ast.parse(source).body:
        if {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} & changed:
            found += [statement] if constants_of(statement) else []
            changed = changed | constants_of(statement) | ({statement.name} if isinstance(statement, ast.FunctionDef) else set())
    return found


def bring_in(mutant: Mutant, path: Path, source: str) -> bool:
    """Make the mistake in this process. Return False where the changed code cannot even be imported."""
    module = next((each for each in sys.modules.values() if getattr(each, "__file__", "") == str(path)), None)
    if module is None:
        return True  # a later import reads the changed file
    if mutant.function is not None:
        exchange(path, source, mutant.function)
    try:
        rebind(module, statements_that_follow(source, _changed(mutant)))
    except Exception:
        return False
    return True


def rebind(module: ModuleType, statements: list[ast.stmt]) -> None:
    """Define constants of a module anew, and in the modules that have imported them by name."""
    for statement in statements:
        before = {name: vars(module)[name] for name in constants_of(statement)}
        exec(compile(ast.Module([statement], []), str(module.__file__), "exec", ANNOTATIONS), vars(module))
        for other in [each for name, each in sys.modules.items() if name.startswith("gpssl")]:
            for name, value in before.items():
                if vars(other).get(name, other) is value:
                    setattr(other, name, vars(module)[name])


def exchange(path: Path, source: str, function: tuple[str, int]) -> None:
    """Give the living functions of this name the code that the changed file has for them, and forget what functions remember."""
    code = next(each for each in _codes(compile(source, str(path), "exec")) if _place(each) == (str(path), *function))
    things = gc.get_objects()
    living = [thing for thing in things if isinstance(thing, FunctionType) and _place(thing.__code__) == _place(code)]
    if not living:
        raise LookupError(function)
    for each in living:
        each.__code__ = code
    for thing in things:
        if type(thing).__name__ == "_lru_cache_wrapper":
            thing.cache_clear()


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _pass(session: pytest.Session, items: list[pytest.Item]) -> bool:
    """Run tests until the first one fails."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return False
    return True


def _in_a_new_process(items: list[pytest.Item]) -> bool:
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *(item.nodeid for item in items)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def in_a_fork(action: Callable[[], bool], seconds: float) -> str:
    """Return what becomes of an action in a fork: it survived, or was killed by a failure, an error or the limit of processor time."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        outcome = NOT_EXCHANGED
        with contextlib.suppress(BaseException):
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (round(seconds) + 1, round(seconds) + 2))
            sys.dont_write_bytecode = True
            outcome = 0 if action() else 1
        os._exit(outcome)
    limit = time.monotonic() + 20 * seconds + 120  # a deadlock takes no processor time
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done or time.monotonic() > limit:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            if not done:
                os.waitpid(child, 0)
            ended = os.waitstatus_to_exitcode(status) if done else -signal.SIGKILL
            return {0: "survived", NOT_EXCHANGED: "not exchanged", -signal.SIGXCPU: "hung", -signal.SIGKILL: "hung"}.get(ended, "killed")
        time.sleep(0.01)
