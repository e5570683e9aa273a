"""Writes the types of the asynchronous classes, from the source of the blocking ones.

async_types.py --write   writes bindings/python/muster/aio/_derived.pyi
async_types.py           fails if that file differs from what it would write
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "bindings/python/muster"
STUB = PACKAGE / "aio/_derived.pyi"
HEAD = '"""Written by tests/python/async_types.py. Types of the derived asynchronous classes."""\n'

def is_awaited(function: ast.FunctionDef) -> bool:
    """As ``_member`` of _derived.py."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return any(name.endswith("timeout") for name in names)


def stub_of(
    member: ast.FunctionDef, blocking: str, constructor: str
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    is_made = member.name == "__init__"
    if is_made:
        member.name = constructor
        member.args.args[0].arg = "cls"
        member.decorator_list.append(ast.Name("classmethod"))
    if is_made or (isinstance(member.returns, ast.Name) and member.returns.id == blocking):
        member.returns = ast.Name("Self")
    member.body = [ast.Expr(ast.Constant(...))]
    return ast.AsyncFunctionDef(**vars(member)) if is_awaited(member) else member


def class_of(
    name: str, tree: ast.Module, blocking: str, constructor: str, without: list[str]
) -> ast.ClassDef:
    source = next(node for node in tree.body
                  if isinstance(node, ast.ClassDef) and node.name == blocking)
    members = [node for node in source.body if isinstance(node, ast.FunctionDef)
               and node.name not in without
               and (not node.name.startswith("_") or (constructor and node.name == "__init__"))]
    names = {node.name for node in source.body if isinstance(node, ast.FunctionDef)}
    stub = ast.ClassDef(name, [ast.Name("Handle")], [], [
        *ast.parse("_core: Any\n_handle: Any\n@staticmethod\n"
                   "def _then(value: Any, convert: Callable[[Any], Any]) -> Any: ...").body,
        *(stub_of(member, blocking, constructor) for member in members),
    ], [])
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    annotations = [each for member in stub.body if isinstance(member, functions)
                   for each in (member.args, member.returns) if each is not None]
    for annotation in annotations:
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name) and node.id in names:
                node.id = f"builtins.{node.id}"  # a method hides the type of its name
    return stub


def imports_of(module: str, tree: ast.Module, stub: ast.ClassDef) -> dict[str, str]:
    """The names that the stub uses, and their modules."""
    where = {"Any": "typing", "Callable": "collections.abc", "Self": "typing",
             "Handle": "muster._handles"}
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            where |= {alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            where[node.name] = f"muster.{module}"
        elif isinstance(node, ast.Assign):
            targets = node.targets
        where |= {target.id: f"muster.{module}" for target in targets
                  if isinstance(target, ast.Name)}
    used = {node.id for node in ast.walk(stub) if isinstance(node, ast.Name)}
    where["Store"] = "muster.aio.store"
    return {name: where[name] for name in used if name in where}


def written() -> str:
    derived = ast.parse((PACKAGE / "aio/_derived.py").read_text())
    module_of = {alias.name: node.module for node in derived.body
                 if isinstance(node, ast.ImportFrom) and node.module for alias in node.names}
    imports: dict[str, str] = {}
    classes = []
    for node in derived.body:
        if not isinstance(node, ast.Assign):
            continue
        call = node.value
        assert isinstance(call, ast.Call)
        blocking, constructor = ast.unparse(call.args[0]), ast.literal_eval(call.args[1])
        without = ast.literal_eval(call.keywords[0].value)
        module = module_of[blocking].removeprefix("muster.")
        tree = ast.parse((PACKAGE / f"{module}.py").read_text())
        stub = class_of(ast.unparse(node.targets[0]), tree, blocking, constructor, without)
        imports |= imports_of(module, tree, stub)
        text = ast.unparse(ast.fix_missing_locations(stub))
        classes.append(text.replace(":\n        ...", ": ...").replace("\n\n", "\n"))
    lines = []
    for module in sorted(set(imports.values())):
        names = sorted(name for name in imports if imports[name] == module)
        lines.append(f"from {module} import {', '.join(names)}")
    return "\n".join([HEAD, "import builtins", *lines, "", "\n\n".join(classes)]) + "\n"


def main(arguments: list[str]) -> int:
    text = written()
    if arguments == ["--write"]:
        STUB.write_text(text)
    elif not STUB.is_file() or STUB.read_text() != text:
        print(f"{STUB} differs: write it by tests/python/async_types.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
