# shellcheck shell=bash
# Starting, stopping and watching processes for the benchmark. Loopback only; every process started here is ended by its
# own process ID. Needs WORK (a folder on a real disk). Sourced by run.

declare -A PIDS=() WATCHED=() CPU_AT=()   # started here; watched for CPU use only (children of those); ticks at the start
STORE_SOCKET='' STORE_PID='' SINK_PORT=''
HZ=$(getconf CLK_TCK)

say() { printf 'bench: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

started() { PIDS[$1]=$2; WATCHED[$1]=$2; }

is_running() { [ -d "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; } # a zombie is not

stop_one() # name [signal]
{
    local pid=${PIDS[$1]:-}

    [ -n "$pid" ] || return 0
    unset "PIDS[$1]" "WATCHED[$1]"
    kill -s "${2:-TERM}" "$pid" 2>/dev/null || true
    for _ in $(seq 200); do
        is_running "$pid" || break
        sleep 0.05
    done
    kill -s KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}

stop_all()
{
    local name

    for name in "${!PIDS[@]}"; do
        stop_one "$name"
    done
}

free_port()
{
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

http_get() ( # port path: prints the answer, head included; in a subshell, for a failed redirection would end the script
    exec 3<>"/dev/tcp/127.0.0.1/$1" 2>/dev/null || exit 1
    printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' "$2" >&3
    timeout 5 cat <&3
)

http_send() ( # port method path media-type body: prints the status
    exec 3<>"/dev/tcp/127.0.0.1/$1" 2>/dev/null || exit 1
    printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s' \
        "$2" "$3" "$4" "${#5}" "$5" >&3
    timeout 5 head -n 1 <&3 | cut -d ' ' -f 2
)

wait_for() # seconds command…: until it succeeds
{
    local end=$((SECONDS + $1))

    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

port_is_open() ( exec 3<>"/dev/tcp/127.0.0.1/$1" )

# ---- CPU use, in % of one core

busy_ticks() { awk '/^cpu /{print $2 + $3 + $4 + $7 + $8}' /proc/stat; }
ticks_of() { awk '{sub(/.*\) /, ""); print $12 + $13}' "/proc/$1/stat" 2>/dev/null || echo 0; }
own_ticks() { awk '{sub(/.*\) /, ""); print $12 + $13 + $14 + $15}' /proc/$$/stat; } # this script and what it waited for

wait_until_quiet() # other people's work would spoil a run: waits for an idle machine, at most QUIET seconds
{
    local before

    [ "${QUIET:-20}" -gt 0 ] || return 0
    for _ in $(seq $((2 * ${QUIET:-20}))); do
        before=$(busy_ticks)
        sleep 0.5
        [ $(($(busy_ticks) - before)) -gt 6 ] || return 0
    done
    say "the machine did not become quiet within ${QUIET:-20} s (see other= below)"
}

cpu_begin()
{
    local name

    CPU_BUSY=$(busy_ticks)
    CPU_OWN=$(own_ticks)
    CPU_NS=$(date +%s%N)
    CPU_AT=()
    for name in "${!WATCHED[@]}"; do
        CPU_AT[$name]=$(ticks_of "${WATCHED[$name]}")
    done
}

cpu_end() # prints "cpu.NAME=…" for each watched process, and cpu.other: what is not this benchmark's
{
    local name ticks own=0 elapsed=$(($(date +%s%N) - CPU_NS))

    for name in "${!WATCHED[@]}"; do
        [ -d "/proc/${WATCHED[$name]}" ] || continue
        ticks=$(($(ticks_of "${WATCHED[$name]}") - ${CPU_AT[$name]:-0}))
        own=$((own + ticks))
        percent "$name" "$ticks" "$elapsed"
    done
    ticks=$(($(busy_ticks) - CPU_BUSY - own - $(own_ticks) + CPU_OWN))
    percent other $((ticks > 0 ? ticks : 0)) "$elapsed"
}

# The same over longer times, precisely: nanoseconds that these processes have run, all threads.
run_ns() # pid…
{
    local pid

    for pid in "$@"; do
        cat "/proc/$pid/task/"*/schedstat
    done | awk '{ns += $1} END {printf "%.0f", ns}'
}

# ---- memory, in kB (1024 bytes) as the kernel tells it

rss_kb() # pid…: what each has in memory, shared pages counted by each
{
    local pid

    for pid in "$@"; do
        cat "/proc/$pid/status"
    done | awk '/^VmRSS:/{kb += $2} END {print kb + 0}'
}

pss_kb() # pid…: shared pages in equal parts; without the right to look: as rss_kb
{
    local pid

    for pid in "$@"; do
        cat "/proc/$pid/smaps_rollup" 2>/dev/null || sed -n 's/^VmRSS:/Pss:/p' "/proc/$pid/status"
    done | awk '/^Pss:/{kb += $2} END {print kb + 0}'
}

calculate() { awk "BEGIN {printf \"%.3f\", $1}"; } # an expression of numbers

percent() { awk -v name="$1" -v ticks="$2" -v ns="$3" -v hz="$HZ" 'BEGIN {printf "cpu.%s=%.0f ", name, 100e9 * ticks / hz / ns}'; }

# ---- the store and the target

# The same server and the same settings for whoever is measured: those of outboxd's embedded store, but no rewrite of the
# append-only file within a run.
store_start() # name
{
    rm -rf "${WORK:?}/$1"
    mkdir -p "$WORK/$1"
    store_run "$1"
}

store_run() # name: with what its folder holds
{
    local folder=$WORK/$1

    rm -f "$folder/s.sock"
    "$STORE_SERVER" --port 0 --unixsocket "$folder/s.sock" --dir "$folder" --save '' --daemonize no --appendonly yes \
        --appendfsync "${FSYNC:-always}" --auto-aof-rewrite-percentage 0 --maxmemory-policy noeviction \
        --logfile "$folder/log" >/dev/null 2>&1 &
    started "$1" $!
    STORE_PID=$!
    STORE_SOCKET=$folder/s.sock
    wait_for 10 test -S "$STORE_SOCKET" || die "the store did not start: $(tail -n 3 "$folder/log")"
}

store_stop() # name
{
    stop_one "$1"
    rm -rf "${WORK:?}/$1"
}

sink_run() # name port [arguments of bench-sink]
{
    local name=$1 port=$2

    shift 2
    "$BUILD/tests/bench/bench-sink" --port "$port" --log "$WORK/$name.log" "$@" 2>"$WORK/$name.err" &
    started "$name" $!
    wait_for 10 port_is_open "$port" || die "the target did not start: $(cat "$WORK/$name.err")"
}

sink_start()
{
    SINK_PORT=$(free_port)
    sink_run sink "$SINK_PORT"
}

sink_count() { http_get "${1:-$SINK_PORT}" /__stats | sed -n 's/.*"recorded":\([0-9]*\).*/\1/p'; } # [port]
sink_reset() { http_get "$SINK_PORT" /__reset >/dev/null; }
sink_dump() { http_get "$SINK_PORT" /__dump >/dev/null; }
sink_has() { [ "$(sink_count "${2:-}")" -ge "$1" ]; } # count [port]
