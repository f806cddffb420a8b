"""Executes a notebook from beginning to end and keeps what it shows.

    python python/notebooks/execute.py NOTEBOOK.ipynb EXECUTED.ipynb

Needs the extra `notebook`. Ends with 1 if a cell fails, or if there is no picture in the result.
"""

import pathlib
import sys

import nbformat
from nbclient import NotebookClient

CELL_S = 300
"""Far above what any cell takes."""


def main(source: pathlib.Path, target: pathlib.Path) -> int:
    notebook = nbformat.read(source, as_version=4)
    client = NotebookClient(notebook, timeout=CELL_S, resources={"metadata": {"path": str(source.parent)}})
    try:
        client.execute()
    finally:
        nbformat.write(notebook, target)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = sum("image/png" in output.get("data", {}) for output in outputs)
    print(f"{target}: {len(notebook.cells)} cells, {pictures} pictures")
    return 0 if pictures else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
