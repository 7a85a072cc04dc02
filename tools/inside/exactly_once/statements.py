"""Statements: branches run under their condition, one after the other, on one state."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from . import algebra
from .core import Frame
from .diagram import Node
from .program import Class, Function, last_name
from .sharing import share
from .storing import Storing
from .values import NONE, UNBOUND, ClassValue, FunctionValue, Murky, Obj, Power, Tensor, Tuple
from .wording import short

MOST_UNROLLED = 16
"""Items of a constant tuple that a loop runs over one by one."""


class Statements(Storing):
    """Executes statements."""

    def execute(self, body: Iterable[ast.stmt], frame: Frame, pc: Node) -> Node:
        """Run statements; answer the worlds in which the one after them is reached."""
        for statement in body:
            pc = self.live(pc)
            if pc is self.diagrams.false:
                break
            self.spend()
            method = getattr(self, "_do_" + type(statement).__name__.lower(), None)
            if method is not None:
                pc = method(statement, frame, pc)
        return pc

    def _do_expr(self, node: ast.Expr, frame: Frame, pc: Node) -> Node:
        if isinstance(node.value, ast.Call):
            self.statements_called.add(node.value)
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value, frame, pc)
        return pc

    def _do_assign(self, node: ast.Assign, frame: Frame, pc: Node) -> Node:
        value = self.evaluate(node.value, frame, pc)
        for target in node.targets:
            self._promise_kept(target, node.value, frame, pc)
            kept = self.still_shared(target, node.value, frame)
            self.assign(target, value, frame, pc)
            for other, when in kept.items():
                share(frame.aliases, ast.unparse(target), other, self.diagrams.both(pc, when), self.diagrams)
            self._alias(target, node.value, value, frame, pc)
        return pc

    def _promise_kept(self, target: ast.expr, source: ast.expr, frame: Frame, pc: Node) -> None:
        """`self.x = x` promises the attribute the class of the parameter's annotation, for all it holds later."""
        if frame.function is None or not isinstance(target, ast.Attribute) or not isinstance(source, ast.Name):
            return
        spec = frame.function.node.args
        given = next((a for a in [*spec.args, *spec.kwonlyargs] if a.arg == source.id and a.annotation), None)
        if given is None:
            return
        hint, _ = self.annotation(given.annotation, self.module_frame(frame.module))
        if hint is not None and not self.is_enum(hint):
            for value, _ in self.values(self.evaluate(target.value, frame, pc), pc):
                if isinstance(value, Obj):
                    self.attribute_hints.setdefault((value, target.attr), hint)

    def _do_annassign(self, node: ast.AnnAssign, frame: Frame, pc: Node) -> Node:
        hint, number = self.annotation(node.annotation, frame)
        if isinstance(node.target, ast.Attribute) and hint is not None:
            for value, _ in self.values(self.evaluate(node.target.value, frame, pc), pc):
                if isinstance(value, Obj):
                    self.attribute_hints[value, node.target.attr] = hint
        if node.value is not None:
            value = self.evaluate(node.value, frame, pc)
            self.assign(node.target, self._hinted(value, hint, number, None), frame, pc)
            self._alias(node.target, node.value, value, frame, pc)
        return pc

    def _do_augassign(self, node: ast.AugAssign, frame: Frame, pc: Node) -> Node:
        old = self.evaluate(_loaded(node.target), frame, pc)
        operand = self.evaluate(node.value, frame, pc)
        under = self.diagrams.under
        new = self.diagrams.map2(
            lambda a, b: self.arithmetic(node.op, a, b, frame, node, "in-place"), under(pc, old), under(pc, operand)
        )
        if any(isinstance(v, Power) or algebra.is_number(v) for v, _ in self.values(old, pc)):
            self.assign(node.target, new, frame, pc)
        else:
            self.change(node.target, new, frame, pc)
        return pc

    def _do_return(self, node: ast.Return, frame: Frame, pc: Node) -> Node:
        value = self.evaluate(node.value, frame, pc) if node.value else self.leaf(NONE)
        pc = self.live(pc)
        frame.result = self.diagrams.ite(pc, value, frame.result)
        frame.gone = self.diagrams.either(frame.gone, pc)
        return self.diagrams.false

    def _do_if(self, node: ast.If, frame: Frame, pc: Node) -> Node:
        d = self.diagrams
        test = self.condition(node.test, frame, pc)
        if not node.orelse and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not frame.caught:
            goes_on = d.both(pc, d.negate(test)) is not d.false
            if goes_on and not self.matters(ast.unparse(node), test):
                raised = node.body[0]
                self.lose(frame, raised, short(ast.unparse(raised), 160), d.both(pc, test))
                return pc
        yes = self.execute(node.body, frame, d.both(pc, test))
        no = d.both(pc, d.negate(test))
        no = self.execute(node.orelse, frame, no) if node.orelse else no
        return self.live(d.either(yes, no))

    def _do_assert(self, node: ast.Assert, frame: Frame, pc: Node) -> Node:
        test = self.condition(node.test, frame, pc)
        fails = self.diagrams.negate(test)
        text = f"AssertionError: {short(ast.unparse(node.test), 160)}"
        holds = self.diagrams.both(pc, test)
        if not frame.caught and holds is not self.diagrams.false and not self.matters(text, fails):
            self.lose(frame, node, text, self.diagrams.both(pc, fails))
            return pc
        self.raise_in(frame, node, text, self.diagrams.both(pc, fails))
        return holds

    def _do_raise(self, node: ast.Raise, frame: Frame, pc: Node) -> Node:
        self.raise_in(frame, node, short(ast.unparse(node.exc), 160) if node.exc else "raised again", pc)
        return self.diagrams.false

    def _do_functiondef(self, node: ast.FunctionDef, frame: Frame, pc: Node) -> Node:
        function = Function(frame.module, node)
        closure = frame if frame.function is not None else None
        self.bind(frame, node.name, self.leaf(FunctionValue(function, closure=closure)), pc)
        return pc

    _do_asyncfunctiondef = _do_functiondef

    def _do_classdef(self, node: ast.ClassDef, frame: Frame, pc: Node) -> Node:
        self.bind(frame, node.name, self.leaf(ClassValue(Class(frame.module, node))), pc)
        return pc

    def _do_import(self, node: ast.Import | ast.ImportFrom, frame: Frame, pc: Node) -> Node:
        self.import_statement(node, frame, pc)
        return pc

    _do_importfrom = _do_import

    def _do_global(self, node: ast.Global, frame: Frame, pc: Node) -> Node:
        frame.globals.update(node.names)
        return pc

    def _do_nonlocal(self, node: ast.Nonlocal, frame: Frame, pc: Node) -> Node:
        frame.nonlocals.update(node.names)
        return pc

    def _do_with(self, node: ast.With | ast.AsyncWith, frame: Frame, pc: Node) -> Node:
        for item in node.items:
            value = self.evaluate(item.context_expr, frame, pc)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, frame, pc)
        return self.execute(node.body, frame, pc)

    _do_asyncwith = _do_with

    def _do_try(self, node: ast.Try, frame: Frame, pc: Node) -> Node:
        d = self.diagrams
        frame.caught.append(d.false)
        going = pc
        for statement in node.body:
            if isinstance(statement, ast.Import | ast.ImportFrom) and node.handlers:
                works = self.is_available(statement, frame)
                frame.caught[-1] = d.either(frame.caught[-1], d.both(going, d.negate(works)))
                going = d.both(going, works)
            going = self.execute([statement], frame, going)
            going = d.both(going, d.negate(frame.caught[-1]))
        caught = frame.caught.pop()
        if not node.handlers and caught is not d.false:
            self.raise_in(frame, node, "raised in a try without a handler", caught)
        going = self.execute(node.orelse, frame, going)
        ends = [going]
        for handler in node.handlers:
            if caught is not d.false:
                ends.append(self.execute(handler.body, frame, caught))
        after = d.false
        for end in ends:
            after = d.either(after, end)
        left = d.both(pc, d.either(after, d.both(frame.gone, pc)))
        if node.finalbody:
            self.execute(node.finalbody, frame, left)
        return self.live(after)

    def _do_for(self, node: ast.For | ast.AsyncFor, frame: Frame, pc: Node) -> Node:
        over = self.evaluate(node.iter, frame, pc)
        found = [(Tuple(()) if self.is_empty_list(v) else v, where) for v, where in self.values(over, pc)]
        if len(found) == 1 and isinstance(found[0][0], Tuple) and len(found[0][0].items) <= MOST_UNROLLED:
            return self._unrolled(node, found[0][0], frame, pc)
        self.assign(node.target, self.element(over, frame, pc, node.iter), frame, pc)
        return self._repeated(node, frame, pc)

    _do_asyncfor = _do_for

    def _unrolled(self, node: ast.For | ast.AsyncFor, items: Tuple, frame: Frame, pc: Node) -> Node:
        d = self.diagrams
        frame.broken.append(d.false)
        going = pc
        for item in items.items:
            if going is d.false:
                break
            frame.skipped.append(d.false)
            self.assign(node.target, item, frame, going)
            going = self.execute(node.body, frame, going)
            going = d.either(going, frame.skipped.pop())
        broken = frame.broken.pop()
        going = self.execute(node.orelse, frame, going) if node.orelse else going
        return self.live(d.either(going, broken))

    def _do_while(self, node: ast.While, frame: Frame, pc: Node) -> Node:
        self.condition(node.test, frame, pc)
        return self._repeated(node, frame, pc)

    def _repeated(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, pc: Node) -> Node:
        """A loop of unknown length: what its body still changes on a second turn can't be counted."""
        d = self.diagrams
        ends = self._turn(node, frame, pc)
        before = dict(frame.env)
        changed = [name for name, value in before.items() if self.is_hot(value)]
        if changed and any(n in changed for n in _stored(node)):
            ends = d.either(ends, self._turn(node, frame, pc))
            for name in changed:
                if frame.env.get(name) is not before[name] and self._counts_differ(before[name], frame.env[name]):
                    why = f"`{name}` is scaled in a loop of unknown length ({frame.module.path}:{node.lineno})"
                    self.overwrite(frame, name, self.leaf(Murky(why)), pc)
        return self.live(ends)

    def _turn(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, pc: Node) -> Node:
        d = self.diagrams
        frame.broken.append(d.false)
        frame.skipped.append(d.false)
        end = self.execute(node.body, frame, pc)
        end = d.either(end, d.either(frame.broken.pop(), frame.skipped.pop()))
        # The worlds that leave the loop by its body's returns have left; all others go on behind it.
        return d.both(pc, d.negate(frame.gone)) if end is d.false else end

    def _counts_differ(self, a: Node, b: Node) -> bool:
        def powers(node: Node) -> set[Any]:
            found: set[Any] = set()
            for value, _ in self.diagrams.values(node):
                found |= (
                    {t.k for t in value.terms}
                    if isinstance(value, Tensor)
                    else {value}
                    if isinstance(value, Power)
                    else set()
                )
            return found

        return powers(a) != powers(b)

    def _do_break(self, node: ast.Break, frame: Frame, pc: Node) -> Node:
        if frame.broken:
            frame.broken[-1] = self.diagrams.either(frame.broken[-1], pc)
        return self.diagrams.false

    def _do_continue(self, node: ast.Continue, frame: Frame, pc: Node) -> Node:
        if frame.skipped:
            frame.skipped[-1] = self.diagrams.either(frame.skipped[-1], pc)
        return self.diagrams.false

    def _do_match(self, node: ast.Match, frame: Frame, pc: Node) -> Node:
        d = self.diagrams
        subject = self.evaluate(node.subject, frame, pc)
        ends, going = d.false, pc
        for case in node.cases:
            test = self._matches(case.pattern, subject, frame, going, node.subject)
            if case.guard is not None:
                test = d.both(test, self.condition(case.guard, frame, d.both(going, test)))
            ends = d.either(ends, self.execute(case.body, frame, d.both(going, test)))
            going = d.both(going, d.negate(test))
        return self.live(d.either(ends, going))

    def _matches(self, pattern: ast.pattern, subject: Node, frame: Frame, pc: Node, at: ast.expr) -> Node:
        d = self.diagrams
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            if pattern.name:
                self.bind(frame, pattern.name, subject, pc)
            return d.true
        if isinstance(pattern, ast.MatchOr):
            result = d.false
            for inner in pattern.patterns:
                result = d.either(result, self._matches(inner, subject, frame, pc, at))
            return result
        if isinstance(pattern, ast.MatchValue):
            value = self.evaluate(pattern.value, frame, pc)
            return d.map2(
                lambda a, b: self.compare(ast.Eq(), a, b, frame, at), d.under(pc, subject), d.under(pc, value)
            )
        return self.atom(f"{ast.unparse(at)} matches {ast.unparse(pattern)}", frame, at)

    def _do_delete(self, node: ast.Delete, frame: Frame, pc: Node) -> Node:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.bind(frame, target.id, self.leaf(UNBOUND), pc)
        return pc


def _loaded(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.copy_location(ast.Name(node.id, ast.Load()), node)
    if isinstance(node, ast.Attribute):
        return ast.copy_location(ast.Attribute(node.value, node.attr, ast.Load()), node)
    if isinstance(node, ast.Subscript):
        return ast.copy_location(ast.Subscript(node.value, node.slice, ast.Load()), node)
    return node


def _stored(node: ast.AST) -> set[str]:
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
        elif isinstance(inner, ast.AugAssign | ast.Assign):
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        elif (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and last_name(inner.func).endswith("_")
        ):
            found |= {n.id for n in ast.walk(inner.func.value) if isinstance(n, ast.Name)}
    return found
