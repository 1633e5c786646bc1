"""Small mistakes that a person could make in a source file: what tests of that file should notice.

Each mutant is one change of one place. What is not mutated, because no test could or should tell: annotations, docstrings, decorators,
f-strings, texts for people (strings of three words and more), what `raise` and `warnings.warn` say (the `raise` itself is), `__all__`,
imports, and arguments that change speed or checks only (`UNSEEN`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

UNSEEN = {"strict", "check_finite", "overwrite_a", "overwrite_b", "overwrite_x", "copy", "stacklevel", "slots", "kw_only"}
"""Keywords without an effect on results."""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "/",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.And: "or",
    ast.Or: "and",
}

TEXT = re.compile(r"\w+\W+\w+\W+\w+")


class Span(NamedTuple):
    """A place in a file: line and byte where it begins and ends. Lines count from one."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Mutant:
    """One change: what stands at `span` of the file becomes `after`."""

    path: str
    span: Span
    before: str
    after: str
    lines: tuple[int, int]
    """First and last line of the statement: tests that reach the mutant run one of them."""
    function: tuple[str, int] | None
    """Qualified name and first line of the outermost function around it; None for what runs while the module is imported."""
    names: tuple[str, ...] = ()
    """The constants of the module that the statement defines, where it does."""

    def __str__(self) -> str:
        return f"{self.path}:{self.span.line}:{self.span.column + 1}  {_short(self.before)}  ->  {_short(self.after)}"

    def compiles(self, source: str) -> bool:
        """Return whether Python can read the file with the mistake in it."""
        try:
            compile(self.applied_to(source), self.path, "exec")
        except SyntaxError:
            return False
        return True

    def applied_to(self, source: str) -> str:
        """Return the source of the file with the mistake in it."""
        lines = source.encode().splitlines(keepends=True)
        first, last = lines[self.span.line - 1], lines[self.span.end_line - 1]
        changed = first[: self.span.column] + self.after.encode() + last[self.span.end_column :]
        return b"".join([*lines[: self.span.line - 1], changed, *lines[self.span.end_line :]]).decode()


def _short(text: str) -> str:
    """Return a text in one line of at most 60 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    return list(_Finder(path.relative_to(root).as_posix(), path.read_text()).found())


class _Finder:
    """Walks through the syntax tree of one file."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.encoded = source.encode().splitlines(keepends=True)
        self.lines = (0, 0)
        self.function: tuple[str, int] | None = None
        self.names: tuple[str, ...] = ()

    def found(self) -> Iterator[Mutant]:
        """Yield the mutants in the order of their places."""
        for statement in ast.parse(self.source).body:
            self.names = tuple(constants_of(statement))
            yield from self._statement(statement, ())

    def _body(self, node: ast.AST, names: tuple[str, ...]) -> Iterator[Mutant]:
        """Yield the mutants of the statements below a node, and of its own expressions."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child, names)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from self._body(child, names)
            elif isinstance(child, ast.expr | ast.withitem | ast.arguments | ast.comprehension | ast.keyword):
                yield from self._expression(child)

    def _statement(self, node: ast.stmt, names: tuple[str, ...]) -> Iterator[Mutant]:
        if _is_beside_the_point(node):
            return
        below = [child.lineno for child in getattr(node, "body", []) if isinstance(child, ast.stmt)]
        self.lines = (node.lineno, max(min(below) - 1, node.lineno) if below else node.end_lineno or node.lineno)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from self._definition(node, names)
            return
        yield from self._of_statement(node)
        if isinstance(node, ast.Raise):
            return
        if isinstance(node, ast.AnnAssign):
            yield from self._expression(node.value) if node.value else ()
            return
        yield from self._body(node, names)

    def _definition(self, node: ast.FunctionDef | ast.ClassDef, names: tuple[str, ...]) -> Iterator[Mutant]:
        """Defaults of parameters are computed outside a function, and its body inside it."""
        inside = self.function
        if isinstance(node, ast.FunctionDef):
            for default in [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]:
                yield from self._expression(default)
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            self.function = inside or (".".join([*names, node.name]), first)
        for statement in node.body:
            yield from self._statement(statement, (*names, node.name))
        self.function = inside

    def _of_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        """A check that is forgotten, a step left out, a condition turned round."""
        if isinstance(node, ast.Raise | ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            yield self._change(node, "pass")
        if isinstance(node, ast.Break):
            yield self._change(node, "continue")
        if isinstance(node, ast.Continue):
            yield self._change(node, "break")
        if isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
            yield self._between(node.target, node.value, f"{OPERATORS[type(node.op)]}=")
        if isinstance(node, ast.If):
            yield self._change(node.test, f"(not ({self._text(node.test)}))")

    def _expression(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of an expression and of those inside it."""
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg in UNSEEN) or _is_call_of(node, "warn"):
            return
        yield from self._of_expression(node)
        for child in ast.iter_child_nodes(node):
            is_type = _is_call_of(node, "cast", "TypeVar") and isinstance(node, ast.Call) and node.args and child is node.args[0]
            if not is_type:
                yield from self._expression(child)

    def _of_expression(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            yield self._between(node.left, node.right, OPERATORS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield self._between(left, right, OPERATORS[type(node.op)])
        elif isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                yield self._between(left, right, OPERATORS[type(operator)])
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
            yield self._change(node, self._text(node.operand))
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.IfExp):
            yield self._change(node.test, f"(not ({self._text(node.test)}))")
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield self._change(test, f"(not ({self._text(test)}))")
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg and keyword.arg not in UNSEEN:
                    yield self._left_out(node, keyword)

    def _constant(self, node: ast.Constant) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._change(node, str(not value))
        elif isinstance(value, int | float):
            yield self._change(node, repr(value + 1))
        elif isinstance(value, str) and not TEXT.search(value):
            yield self._change(node, repr(f"XX{value}XX" if value else "XX"))

    def _left_out(self, call: ast.Call, keyword: ast.keyword) -> Mutant:
        """An argument that is forgotten: replaced by an empty mapping, so that commas stay right."""
        return self._change(keyword, "**{}")

    def _change(self, node: ast.AST, after: str) -> Mutant:
        span = Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return Mutant(self.path, span, self._text(node), after, self.lines, self.function, self.names)

    def _between(self, left: ast.expr, right: ast.expr, operator: str) -> Mutant:
        """Change the operator between two operands, and leave parentheses and line breaks around it."""
        span = Span(left.end_lineno or 0, left.end_col_offset or 0, right.lineno, right.col_offset)
        gap = self._between_text(span)
        before = gap.strip(" ()\\\n")
        return Mutant(self.path, span, gap, gap.replace(before, operator, 1), self.lines, self.function, self.names)

    def _between_text(self, span: Span) -> str:
        return re.sub(r"#.*", "", self._segment(span))

    def _text(self, node: ast.AST) -> str:
        return self._segment(Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]

    def _segment(self, span: Span) -> str:
        lines = self.encoded[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return b"".join(lines).decode()


def constants_of(statement: ast.stmt) -> set[str]:
    """Return the names that an assignment defines; none for other statements."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target] if isinstance(statement, ast.AnnAssign) else []
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_beside_the_point(node: ast.stmt) -> bool:
    """Return whether a statement is a text, an import, or for type checkers."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    names = {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}
    for_checkers = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.Import | ast.ImportFrom) or "__all__" in names or for_checkers


def _is_call_of(node: ast.AST, *names: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in names
