#!/usr/bin/env python3
"""Makes python/REFERENCE.md of the docstrings in python/src. A blink; imports nothing that is to be installed.

    python/reference.py            writes the page
    python/reference.py --check    fails if the page is not what the sources make

Something public without a docstring is refused either way, and sources with such mistakes must be refused first. The standard library
does for this: generators such as mkdocstrings make pages for a site alone, and this one is read in the repository, too.
"""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src/stealgrid"
PAGE = HERE / "REFERENCE.md"
HEAD = """# Python reference

What each class and function of the package `stealgrid` has. How to use it: [PYTHON](../docs/PYTHON.md).
Made of the docstrings by `python/reference.py`.
"""


class Wrong(Exception):
    """What is wrong with the sources, or with the page."""


def markdown(docstring: str) -> str:
    """A docstring as Markdown: code, names of others, and what is indented after two colons or begins with a prompt."""
    lines: list[str] = []
    is_code = False
    for line in docstring.strip().splitlines():
        prompt = line.startswith(">>> ")
        if is_code and line and not (prompt or line.startswith(" ")):
            while not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            is_code = False
        if prompt and not is_code:
            lines.append("```python")
            is_code = True
        if is_code:
            if line or lines[-1] != "```python":
                lines.append(re.sub(r" +# doctest: \+SKIP$", "", line.removeprefix(">>> ").removeprefix("    ")))
        elif line.endswith(" ::"):
            lines += [inline(line.removesuffix(" ::")), "", "```python"]
            is_code = True
        else:
            lines.append(inline(line))
    return "\n".join([*lines, "```"] if is_code else lines)


def inline(line: str) -> str:
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", line).replace("``", "`")


def documented(node: ast.FunctionDef | ast.ClassDef, where: str) -> str:
    text = ast.get_docstring(node)
    if not text:
        raise Wrong(f"{where} has no docstring")
    return markdown(text)


def decorators(function: ast.FunctionDef) -> set[str]:
    return {decorator.id for decorator in function.decorator_list if isinstance(decorator, ast.Name)}


def called(function: ast.FunctionDef, *, without_first: bool) -> str:
    """The arguments as one writes them. Types are in the source."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    written = [
        argument.arg if place < missing else f"{argument.arg}={ast.unparse(arguments.defaults[place - missing])}"
        for place, argument in enumerate(positional)
    ][int(without_first) :]
    if arguments.kwonlyargs:
        written.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        written.append(argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}")
    return ", ".join(written)


def fields(body: list[ast.stmt]) -> list[tuple[str, str]]:
    """Attributes with the string that stands below each; none of those that begin with an underscore."""
    found = []
    for statement, below in zip(body, [*body[1:], ast.Pass()], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                pass
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]):
                pass
            case _:
                continue
        match below:
            case ast.Expr(value=ast.Constant(value=str(text))):
                found.append((name, " ".join(markdown(text).split())))
            case _:
                found.append((name, ""))
    return [(name, text) for name, text in found if not name.startswith("_")]


def of_class(node: ast.ClassDef) -> str:
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    begin = next((function for function in functions if function.name == "__init__"), None)
    arguments = f"({called(begin, without_first=True)})" if begin else ""
    text = f"## {node.name}\n\n`{node.name}{arguments}`\n\n{documented(node, node.name)}\n"
    rows = fields(node.body) + [row for row in (fields(begin.body) if begin else []) if row[1]]
    if silent := [name for name, said in rows if not said]:
        raise Wrong(f"{node.name}.{silent[0]} has no docstring below it")
    methods = []
    for function in functions:
        if function.name.startswith("_"):
            continue
        said, kinds = documented(function, f"{node.name}.{function.name}"), decorators(function)
        if kinds & {"property", "cached_property"}:
            rows.append((function.name, " ".join(said.split())))
        else:
            name = f"{function.name}({called(function, without_first='staticmethod' not in kinds)})"
            methods.append(f"\n### {node.name}.{function.name}\n\n`{name}`\n\n{said}\n")
    if rows:
        text += "\n| has | |\n|---|---|\n" + "".join(f"| `{name}` | {said} |\n" for name, said in rows)
    return text + "".join(methods)


def page(sources: dict[str, str]) -> str:
    """The page of some files by their names, of which `__init__.py` says what is public."""
    modules = {name: ast.parse(text) for name, text in sources.items()}
    public: list[str] = []
    for statement in modules["__init__.py"].body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                public = ast.literal_eval(value)
    found: dict[str, str] = {}
    for module in modules.values():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name in public:
                found[node.name] = of_class(node)
            elif isinstance(node, ast.FunctionDef) and node.name in public:
                name, arguments = node.name, called(node, without_first=False)
                found[name] = f"## {name}\n\n`{name}({arguments})`\n\n{documented(node, name)}\n"
    if missing := [name for name in public if name not in found]:
        raise Wrong(f"__all__ names {', '.join(missing)}, which no file has")
    head = ast.get_docstring(modules["__init__.py"])
    if not head:
        raise Wrong("the package has no docstring")
    return "\n".join([HEAD, markdown(head) + "\n", *(found[name] for name in public)])


def columns() -> str:
    """The columns of the data frames, of the file that the package reads them by."""
    text = "\n## Columns\n\nOf the data frames of a `Run`; *in the file* is the name there.\n"
    for table, rows in runpy.run_path(str(SOURCES / "columns.py"))["TABLES"].items():
        text += f"\n### {table}\n\n| column | unit | meaning | in the file |\n|---|---|---|---|\n"
        text += "".join(f"| `{row.name}` | {row.unit} | {row.meaning} | `{row.source}` |\n" for row in rows)
    return text


def mutants() -> None:
    """Sources with mistakes must be refused, and one without must not."""
    right = '"""A package."""\n__all__ = ["one"]\n', 'def one(a, *, b=2):\n    """Says ``one``."""\n'
    if "`one(a, *, b=2)`\n\nSays `one`." not in page({"__init__.py": right[0], "one.py": right[1]}):
        raise Wrong("a right package has no page")
    for what, init, module in [
        ("a function without a docstring", right[0], "def one(a, *, b=2):\n    pass\n"),
        ("a name that nothing has", right[0].replace('"one"', '"one", "two"'), right[1]),
        ("a package without a docstring", right[0].replace('"""A package."""\n', ""), right[1]),
        ("a field without one", right[0], 'class one:\n    """A class."""\n    two: int\n'),
        ("a method without one", right[0], 'class one:\n    """A class."""\n    def two(self):\n        pass\n'),
    ]:
        try:
            page({"__init__.py": init, "one.py": module})
        except Wrong:
            continue
        raise Wrong(f"{what} is taken for right")


def main() -> None:
    mutants()
    made = page({path.name: path.read_text() for path in sorted(SOURCES.glob("*.py"))}) + columns()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made)
    elif not PAGE.exists() or PAGE.read_text() != made:
        raise Wrong("python/REFERENCE.md is not what the docstrings make: python/reference.py makes it")
    parts = made.count("\n## ")
    print(f"python/REFERENCE.md: {parts} parts, {len(made.split()):,} words")


try:
    main()
except Wrong as wrong:
    sys.exit(f"FAILED: {wrong}")
