#!/usr/bin/env python3
"""Turns the scripts named in scripts.def into one C file: name, text, length and SHA-1 of each.

A line `-- include: core` is replaced by lib/core.lua (once per script, however often it is asked for); the script's own
first line `#!lua …` stays first, for the server reads it. Usage: embed.py scripts.def OUTPUT.c DEPFILE
"""
import hashlib
import pathlib
import re
import sys

ROW = re.compile(r'^SCRIPT\(\s*(\w+)\s*,\s*"([a-z_]+)"\s*\)', re.M)
INCLUDE = re.compile(r'^\s*-- include: ([a-z_]+)\s*$')


def expand(path, done, depends):
    """The lines of a file with its includes in their places."""
    depends.append(path)
    for line in path.read_text(encoding="utf-8").splitlines():
        match = INCLUDE.match(line)
        if not match:
            yield line
        elif match[1] not in done:
            done.add(match[1])
            yield from expand(SCRIPTS / "lib" / f"{match[1]}.lua", done, depends)


def as_c_bytes(data):
    """Characters, not a string: ISO C promises only 4095 of those in a literal."""
    rows = [", ".join(f"'\\x{b:02x}'" for b in data[i:i + 16]) for i in range(0, len(data), 16)]
    return ",\n    ".join(rows)


def main():
    table, output, depfile = (pathlib.Path(a) for a in sys.argv[1:4])
    depends = [table]
    texts, rows = [], []
    for ident, name in ROW.findall(table.read_text(encoding="utf-8")):
        text = "\n".join(expand(SCRIPTS / f"{name}.lua", set(), depends)) + "\n"
        if not text.startswith("#!lua"):
            sys.exit(f"{name}.lua: the first line is not `#!lua`: the server would not check the keys it touches")
        data = text.encode()
        sha1 = hashlib.sha1(data).hexdigest()
        texts.append(f"static const char text_{name}[] = {{\n    {as_c_bytes(data)}, '\\0'}};\n")
        rows.append(f'    [SCRIPT_{ident}] = {{"{name}", text_{name}, sizeof(text_{name}) - 1, "{sha1}"}},\n')
    output.write_text(
        "/* Made by embed.py. */\n#include \"common/store/scripts.h\"\n\n" + "\n".join(texts)
        + "\nconst struct store_script store_scripts[SCRIPT_COUNT] = {\n" + "".join(rows) + "};\n",
        encoding="utf-8")
    escaped = [str(p).replace(" ", "\\ ") for p in depends]
    depfile.write_text(f"{output}: {' '.join(escaped)}\n", encoding="utf-8")


SCRIPTS = pathlib.Path(__file__).resolve().parent
try:
    main()
except OSError as error:
    sys.exit(f"embed.py: {error}")
