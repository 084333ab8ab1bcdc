#!/bin/bash
# Stops what start.sh started in DIR, by its pid files.
#
#   stop.sh DIR [--kill] [--only opencode|provider]
#
# --kill: SIGKILL at once (a crash, for tests). Else SIGTERM, SIGKILL after 5 s.
# The state stays in DIR: start.sh on the same DIR goes on with it.
set -euo pipefail

usage() { sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[ $# -ge 1 ] || usage
dir=$1; shift
kill_now="" only="opencode provider"
while [ $# -gt 0 ]; do
  case $1 in
    --kill) kill_now=1; shift ;;
    --only) [ $# -ge 2 ] || usage; only=$2; shift 2 ;;
    *) usage ;;
  esac
done

started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
running() { # PID START: alive, not a zombie
  [ "$(started "$1")" = "$2" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null
}
for what in $only; do
  f=$dir/$what.pid
  [ -f "$f" ] || continue
  read -r pid at < "$f" || true
  if [ -n "${at:-}" ] && running "$pid" "$at"; then
    if [ -n "$kill_now" ]; then kill -KILL "$pid"; else kill -TERM "$pid"; fi
    for _ in $(seq 50); do running "$pid" "$at" || break; sleep 0.1; done
    if running "$pid" "$at"; then kill -KILL "$pid"; for _ in $(seq 50); do running "$pid" "$at" || break; sleep 0.1; done; fi
  fi
  rm -f "$f"
done
