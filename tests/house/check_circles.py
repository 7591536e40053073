#!/usr/bin/env python3
"""Checks that the files of a room do not use each other in a circle.

    check_circles.py ROOT BUILD [NM]

Reads the symbols of the product's object files below BUILD, functions and data.  A file uses
another when it names a symbol that the other defines.  Files of one room that use each other,
directly or through others, are a circle: none of them can be read or tested before the rest.

Prints each circle that ALLOWED does not list, as a path with the symbols of each step, and each
row of ALLOWED that no longer occurs.  Exit status 1 if there is either.
"""

import os
import sys

from check_names import FOLDERS, objects, source, symbols

# Files of a circle, with the reason why no cut by subject opens it.
ALLOWED = {}


def rooms(root, build, nm):
    """Per room, per file: the names that it defines and the names that it uses."""
    paths = [path for path in sorted(objects(build)) if path.split("/")[0] in FOLDERS]
    defined, used = symbols(nm, build, paths)
    found = {}
    for path in paths:
        if os.path.exists(os.path.join(root, source(path))):
            room, name = os.path.split(source(path))
            names = found.setdefault(room, {}).setdefault(name, (set(), set()))
            names[0].update(defined[path])
            names[1].update(used[path])
    return found


def uses(files):
    """Per file, per other file that it uses: the symbols."""
    return {
        user: {
            other: names[1] & theirs[0]
            for other, theirs in files.items()
            if other != user and names[1] & theirs[0]
        }
        for user, names in files.items()
    }


def path(graph, start, end):
    """A shortest path of at least one step, or nothing."""
    seen, paths = set(), [[start]]
    for steps in paths:
        for other in sorted(graph[steps[-1]]):
            if other == end:
                return [*steps, other]
            if other not in seen:
                seen.add(other)
                paths.append([*steps, other])
    return []


def circles(graph):
    """The strongly connected sets of two files or more."""
    reach = {file: {other for other in graph if path(graph, file, other)} for file in graph}
    return {
        tuple(sorted(other for other in reach[file] if file in reach[other]))
        for file in graph
        if file in reach[file]
    }


def main():
    root, build, nm = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "nm"
    found = rooms(root, build, nm)
    left = dict(ALLOWED)
    faults = []
    for room, files in sorted(found.items()):
        graph = uses(files)
        for circle in sorted(circles(graph)):
            if left.pop((room, *circle), None):
                continue
            around = path(graph, circle[0], circle[0])
            steps = (
                f"{user} -> {other} ({', '.join(sorted(graph[user][other]))})"
                for user, other in zip(around, around[1:])
            )
            faults.append(f"{room}: {' '.join(circle)}: {'; '.join(steps)}")
    faults += [f"{room}: no circle of {' '.join(circle)}: ALLOWED" for room, *circle in left]
    print("\n".join(faults))
    print(f"{len(found)} rooms, {len(faults)} faults")
    return 1 if faults or not found else 0


if __name__ == "__main__":
    sys.exit(main())
