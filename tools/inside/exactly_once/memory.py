"""What the parts of the engine remember in the course of one analysis."""

from __future__ import annotations

import ast

from .diagram import Node
from .program import Class, Function
from .values import Const, External, Obj


class Memory:
    """What was found so far, so that it is found once.

    Attributes:
        compared: the constants that each unknown value was compared with, in order.
        nicknames: for a guard on an object's class, the attributes that the object was stored in.
        executed: top-level statements that were run.
        registries: containers made at the top level of a module or class.
        extras: attributes that were set on unknown objects, by the object's text.
        attribute_hints: what annotated assignments promise about attributes.
        known_objects: texts of the objects that the entry built.
        products: for what a factory promises, the classes without that base which it makes.
        products_noted: factories whose products are known.
        statements_called: calls whose result nobody reads.
    """

    def __post_init__(self) -> None:
        self.compared: dict[str, list[Const]] = {}
        self.nicknames: dict[str, list[str]] = {}
        self.executed: set[ast.stmt] = set()
        self.registries: dict[Obj, tuple[str, str]] = {}
        self.extras: dict[str, dict[str, Node]] = {}
        self.attribute_hints: dict[tuple[Obj, str], Class] = {}
        self.known_objects: set[str] = {"self"}
        self.products: dict[Class, dict[Class, None]] = {}
        self.products_noted: set[tuple[Class, str]] = set()
        self.statements_called: set[ast.Call] = set()
        self._bases: dict[int, list[Class | External]] = {}
        self._below: dict[tuple[Class, str], bool] = {}
        self._class_texts: dict[int, str] = {}
        self._class_vars: dict[tuple[int, str], Node] = {}
        self._instances: dict[str, Node | None] = {}
        self._not_made: set[tuple[str, Class | None]] = set()
        self._lacking: dict[tuple[Class, str], bool] = {}
        self._flags: dict[tuple[Class, str], str] = {}
        self._returns: dict[Function, tuple[Class | None, bool]] = {}
        self._made: dict[tuple[int, str], Obj] = {}
        self._reaching: dict[Function, bool] = {}
