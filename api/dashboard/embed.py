"""Turns the dashboard's files into a C table: embed.py OUTPUT FILE... The API serves them from memory, so that a program that
runs needs nothing from the disk and an upgrade replaces program and pages together."""
import pathlib
import sys

TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8',
         '.svg': 'image/svg+xml'}


def rows(paths):
    for index, path in enumerate(paths):
        content = path.read_bytes()
        yield index, path.name, TYPES[path.suffix], content


def main(output, names):
    table = list(rows([pathlib.Path(name) for name in names]))
    lines = ['/* Made by embed.py from the files of api/dashboard. */', '#include "api/dashboard/files.h"', '']
    for index, _, _, content in table:
        body = ','.join(map(str, content))
        lines.append(f'static const unsigned char bytes_{index}[] = {{{body}}};')
    lines += ['', 'const struct dashboard_file dashboard_files[] = {']
    for index, name, kind, content in table:
        lines.append(f'    {{"{name}", "{kind}", bytes_{index}, {len(content)}}},')
    lines += ['};', f'const unsigned dashboard_file_count = {len(table)};', '']
    pathlib.Path(output).write_text('\n'.join(lines))


main(sys.argv[1], sys.argv[2:])
