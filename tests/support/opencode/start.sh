#!/bin/bash
# Starts the fake model provider and a real `opencode serve` for tests, offline.
#
#   start.sh DIR [--port N] [--provider-port N] [--password PW] [--timeout SECS]
#
# DIR gets everything: state/ (its database and its HOME), work/ (the project folder
# it serves), log/, env (the lines printed). opencode itself comes from install.sh;
# OPENCODE_TEST_VERSION=X.Y.Z (with a DIR of its own) tries another version than the
# pinned one. Run again on the same DIR: whatever is down is started again with the
# state it had and on the port it had; whatever is up is left alone.
# Prints KEY=VALUE lines once both answer; exit 0. Any failure: exit 1 (then stop.sh DIR).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { echo "start.sh: $*" >&2; exit 1; }
usage() { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

[ $# -ge 1 ] || usage
case $1 in -*) usage ;; esac
mkdir -p "$1"
dir=$(cd "$1" && pwd); shift
port="" pport="" password="" timeout=100
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --port) port=$2 ;;
    --provider-port) pport=$2 ;;
    --password) password=$2 ;;
    --timeout) timeout=$2 ;;
    *) usage ;;
  esac
  shift 2
done
mkdir -p "$dir/log" "$dir/work" "$dir/state/home" "$dir/state/config/opencode/node_modules"
remember() { # FILE VALUE: the value, else what an earlier start on this DIR was given
  if [ -n "$2" ]; then (umask 077; printf %s "$2" > "$dir/state/$1"); fi
  if [ -f "$dir/state/$1" ]; then cat "$dir/state/$1"; fi
}
password=$(remember password "$password")
version=$(remember version "${OPENCODE_TEST_VERSION:-}")
bin=$("$here/install.sh" ${version:+"$version"}) || exit 1
version=${version:-$(node -p 'require(process.argv[1]).dependencies["opencode-ai"]' "$here/package.json")}
deadline=$((SECONDS + timeout)) # what fetching took does not count

# A pid file holds "pid starttime", so that a reused pid is never taken for ours.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
alive() { # FILE
  local pid at
  [ -f "$1" ] && read -r pid at < "$1" && [ -n "$at" ] && [ "$(started "$pid")" = "$at" ] &&
    ! grep -q '^State:.*Z' "/proc/$pid/status"
}
record() { echo "$1 $(started "$1")" > "$2"; }
kept() { [ -f "$dir/env" ] && sed -n "s/^$1=//p" "$dir/env" | tail -n 1 || true; }
free_port() {
  node -e 'const s=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})'
}

# 1. The fake provider.
if ! alive "$dir/provider.pid"; then
  pport=${pport:-$(kept PROVIDER_PORT)}
  : > "$dir/log/provider.out"
  setsid node "$here/fake-provider.mjs" --port "${pport:-0}" --log "$dir/log/provider.log" \
    </dev/null >"$dir/log/provider.out" 2>&1 &
  record $! "$dir/provider.pid"
  while :; do
    provider_url=$(head -n 1 "$dir/log/provider.out")
    case $provider_url in http://*) break ;; esac
    alive "$dir/provider.pid" || die "the provider did not start: $(cat "$dir/log/provider.out")"
    [ $SECONDS -lt $deadline ] || die "the provider did not start in time"
    sleep 0.05
  done
else
  provider_url=$(kept PROVIDER_URL)
fi
read -r provider_pid _ < "$dir/provider.pid"

# 2. opencode. Its configuration directory gets an (empty) node_modules and a lock
#    file that names its plugin package: without them it starts an `npm install`
#    of that package in the background.
cfg=$dir/state/config/opencode
cat > "$cfg/package.json" <<END
{ "dependencies": { "@opencode-ai/plugin": "$version" } }
END
cat > "$cfg/package-lock.json" <<END
{ "lockfileVersion": 3, "packages": { "": { "dependencies": { "@opencode-ai/plugin": "$version" } } } }
END
cat "$here/opencode.json" > "$dir/opencode.json"

up() { # Any answer will do: with a password it is 401.
  node -e 'fetch(process.argv[1],{signal:AbortSignal.timeout(2000)}).then(()=>process.exit(0),()=>process.exit(1))' \
    "http://127.0.0.1:$1/global/health"
}
if ! alive "$dir/opencode.pid"; then
  port=${port:-$(kept OPENCODE_PORT)}
  port=${port:-$(free_port)}
  : > "$dir/log/opencode.out"
  # A clean environment: no proxy, key or configuration of the caller's gets in.
  (
    cd "$dir/work"
    exec setsid env -i PATH="$PATH" LANG=C.UTF-8 TZ="${TZ:-UTC}" HOME="$dir/state/home" \
      XDG_CONFIG_HOME="$dir/state/config" XDG_DATA_HOME="$dir/state/data" \
      XDG_STATE_HOME="$dir/state/state" XDG_CACHE_HOME="$dir/state/cache" \
      TMPDIR="${TMPDIR:-/tmp}" \
      FAKE_PROVIDER_URL="$provider_url" OPENCODE_CONFIG="$dir/opencode.json" \
      OPENCODE_DISABLE_PROJECT_CONFIG=1 OPENCODE_DISABLE_AUTOUPDATE=1 \
      OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 \
      OPENCODE_DISABLE_SHARE=1 OPENCODE_DISABLE_DEFAULT_PLUGINS=1 OPENCODE_PURE=1 \
      OPENCODE_DISABLE_CLAUDE_CODE=1 OPENCODE_DISABLE_EXTERNAL_SKILLS=1 \
      OPENCODE_DISABLE_PRUNE=1 OPENCODE_DISABLE_AUTOCOMPACT=1 \
      npm_config_registry=http://127.0.0.1:9/ \
      ${password:+OPENCODE_SERVER_PASSWORD="$password"} \
      "$bin" serve --hostname 127.0.0.1 --port "$port" --print-logs --log-level INFO
  ) </dev/null >>"$dir/log/opencode.out" 2>>"$dir/log/opencode.log" &
  record $! "$dir/opencode.pid"
  # Ask only once it says that it listens (see README.md, "the first request").
  until grep -q 'server listening on' "$dir/log/opencode.out" && up "$port"; do
    alive "$dir/opencode.pid" || die "opencode did not start: $(tail -n 5 "$dir/log/opencode.out" "$dir/log/opencode.log")"
    [ $SECONDS -lt $deadline ] || die "opencode did not start in time"
    sleep 0.1
  done
else
  port=$(kept OPENCODE_PORT)
fi
read -r opencode_pid _ < "$dir/opencode.pid"

umask 077
cat > "$dir/env.new" <<END
OPENCODE_URL=http://127.0.0.1:$port
OPENCODE_PORT=$port
OPENCODE_PID=$opencode_pid
OPENCODE_VERSION=$version
OPENCODE_PASSWORD=$(printf %q "$password")
PROVIDER_URL=$provider_url
PROVIDER_PORT=${provider_url##*:}
PROVIDER_PID=$provider_pid
END
mv "$dir/env.new" "$dir/env"
cat "$dir/env"
