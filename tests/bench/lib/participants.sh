# shellcheck shell=bash
# Who is measured: outboxd and the BullMQ pipeline, behind the same few functions. Sourced by run, after processes.sh.
#
#   X_start  store and pipeline are up, API_PORT set       X_stop    all of it ended
#   X_hold   accepted messages are not delivered …         X_resume  … until now; the argument: deliveries at once
#   X_load   load generator's arguments for this API

API_PORT='' WORKERS=()
OUTBOXD_SETTINGS='' # further lines of its configuration

# ---- outboxd: workers are held by SIGSTOP, so that the API is measured alone

outboxd_durability()
{
    case ${FSYNC:-always} in
    always) echo fsync ;;
    everysec) echo everysec ;;
    *) echo memory ;;
    esac
}

outboxd_config()
{
    cat <<YAML
node: bench
listen: 127.0.0.1:$API_PORT
state_dir: $WORK/outboxd
store: {url: "unix://$STORE_SOCKET"}
target: {url: "http://127.0.0.1:$SINK_PORT"}
session_cap: 1000000
watchdog: 10m
durability: $(outboxd_durability)
kinds:
  - {name: bench, url: /bench, ordering: strict, idempotent: true}
$OUTBOXD_SETTINGS
YAML
}

outboxd_is_ready() { http_get "$API_PORT" /readyz | head -n 1 | grep -q ' 200 '; }

outboxd_has_started() { outboxd_is_ready || ! is_running "${PIDS[outboxd]}"; } # or has failed

outboxd_watch_children()
{
    local supervisor=${PIDS[outboxd]} stat pid comm

    WORKERS=()
    for stat in /proc/[0-9]*/stat; do
        pid=${stat#/proc/}
        pid=${pid%/stat}
        [ "$(awk '{sub(/.*\) /, ""); print $2}' "$stat" 2>/dev/null)" = "$supervisor" ] || continue
        comm=$(cat "/proc/$pid/comm" 2>/dev/null)
        case $comm in
        outboxd-api) WATCHED[api]=$pid ;;
        outboxd-worker)
            WORKERS+=("$pid")
            WATCHED[worker${#WORKERS[@]}]=$pid
            ;;
        esac
    done
    [ ${#WORKERS[@]} -gt 0 ] && [ -n "${WATCHED[api]:-}" ]
}

outboxd_launch() # at the store that runs
{
    API_PORT=$(free_port)
    rm -rf "$WORK/outboxd"
    mkdir -p "$WORK/outboxd/locks"
    : >"$WORK/outboxd/locks/1.1" # left behind by the dead process that bench-stage claims for
    outboxd_config >"$WORK/outboxd.yaml"
    "$BUILD/supervisor/outboxd" --config "$WORK/outboxd.yaml" >"$WORK/outboxd.log" 2>&1 &
    started outboxd $!
}

outboxd_await()
{
    if ! wait_for 60 outboxd_has_started || ! outboxd_watch_children; then
        say "outboxd did not become ready: $(tail -n 5 "$WORK/outboxd.log")"
        return 1
    fi
}

outboxd_start()
{
    store_start store
    outboxd_launch
    outboxd_await || { outboxd_stop; return 1; }
}

outboxd_end()
{
    local name

    outboxd_resume
    WORKERS=()
    stop_one outboxd
    for name in "${!WATCHED[@]}"; do
        case $name in api | worker*) unset "WATCHED[$name]" ;; esac
    done
}

outboxd_stop() { outboxd_end; store_stop store; }

outboxd_hold() { kill -s STOP "${WORKERS[@]}"; }
outboxd_resume() { [ ${#WORKERS[@]} -eq 0 ] || kill -s CONT "${WORKERS[@]}" 2>/dev/null || true; }

outboxd_load()
{
    load --workspaces 8 --body '{"clientMessageID":"{id}","kind":"bench","payload":{"id":"{id}","text":"{pad}"}}' "$@"
}

outboxd_batches() # 100 messages in each: as many connections as keep the store busy
{
    local line='{"workspaceID":"{workspace}","sessionID":"{session}","clientMessageID":"{id}","kind":"bench"'

    load --workspaces 8 --connections 8 --batch 100 --path /v1/batch --body "$line"',"payload":{"id":"{id}","text":"{pad}"}}' "$@"
}

# ---- BullMQ: one accepting process, one Worker; held by not running it

bullmq_start()
{
    store_start store
    API_PORT=$(free_port)
    PORT=$API_PORT STORE_SOCKET=$STORE_SOCKET node "$PEER/accept.mjs" >"$WORK/peer-accept.log" 2>&1 &
    started accept $!
    if ! wait_for 15 port_is_open "$API_PORT"; then
        say "the BullMQ pipeline did not start: $(tail -n 5 "$WORK/peer-accept.log")"
        bullmq_stop
        return 1
    fi
    bullmq_resume
}

bullmq_stop()
{
    stop_one worker
    stop_one accept
    store_stop store
}

bullmq_hold() { stop_one worker; }

bullmq_resume() # [concurrency]
{
    [ -z "${PIDS[worker]:-}" ] || return 0
    CONCURRENCY=${1:-50} TARGET=http://127.0.0.1:$SINK_PORT STORE_SOCKET=$STORE_SOCKET \
        node "$PEER/worker.mjs" >"$WORK/peer-worker.log" 2>&1 &
    started worker $!
    wait_for 15 grep -q ready "$WORK/peer-worker.log" || die "BullMQ's worker did not start: $(cat "$WORK/peer-worker.log")"
}

bullmq_load()
{
    load --path '/sessions/{session}/messages' --body '{"clientMessageID":"{id}","text":"{pad}"}' "$@"
}

# Node 20 is what the accepting side's HTTP library needs.
bullmq_is_usable()
{
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
        say "no npm here: the BullMQ pipeline is skipped"
        return 1
    fi
    if [ "$(node -p 'parseInt(process.versions.node)')" -lt 20 ]; then
        say "node $(node --version) is older than 20: the BullMQ pipeline is skipped"
        return 1
    fi
    PEER=$BUILD/tests/bench/peers/bullmq
    mkdir -p "$PEER"
    cp "$BENCH/peers/bullmq/"* "$PEER/"
    if ! (cd "$PEER" && npm install --no-package-lock --no-audit --no-fund --loglevel=error >"$WORK/npm.log" 2>&1); then
        say "npm install failed: the BullMQ pipeline is skipped ($(tail -n 1 "$WORK/npm.log"))"
        return 1
    fi
}
