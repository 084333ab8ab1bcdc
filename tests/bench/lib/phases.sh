# shellcheck shell=bash
# What is measured of outboxd and BullMQ alike: one function per row of the table, for whoever is given. Figures go to
# $SAMPLES, a line each: run, row, who, name, value. Sourced by run, after participants.sh.

# Splits "name=value …" into samples; what is no number is left out.
sample() # row who text
{
    tr ' ' '\n' <<<"$3" | awk -F= -v OFS='\t' -v run="$RUN" -v row="$1" -v who="$2" \
        'NF == 2 && $2 ~ /^[0-9.]+$/ {print run, row, who, $1, $2}' >>"$SAMPLES"
}

load() # arguments of bench-load; the last line is left in LOADED
{
    "$BUILD/tests/bench/bench-load" --port "$API_PORT" --log "$WORK/load.log" "$@" >"$WORK/load.txt" &
    started load $!
    wait "${PIDS[load]}" || die "the load generator failed: $(cat "$WORK/load.txt")"
    unset 'PIDS[load]' 'WATCHED[load]'
    LOADED=$(cat "$WORK/load.txt")
}

loaded() { sed -n "s/.* $1=\([0-9.]*\).*/\1/p" <<<" $LOADED"; }

# Lays the logs beside each other. A lost, doubled or (within outboxd) disordered message spoils the whole benchmark.
check() # row who
{
    local line

    sink_dump
    line=$("$BUILD/tests/bench/bench-check" "$WORK/load.log" "$WORK/sink.log") || [ -n "$line" ] || die "bench-check failed"
    sample "$1" "$2" "$line"
    if [ "$2" = outboxd ] && ! grep -q ' lost=0 .* confirmed_twice=0 .* out_of_order=0 overlapping=0 ' <<<"$line"; then
        say "WRONG, run $RUN, row $1: $line"
        FAILED=1
    fi
    say "run $RUN, $1, $2: $LOADED | $line"
}

drain() # waits until the target has what was accepted
{
    wait_for "${DRAIN_SECONDS:-120}" sink_has "$(loaded accepted)" || say "not all was delivered within ${DRAIN_SECONDS:-120} s"
    sleep 0.2
}

begin() { sink_reset; wait_until_quiet; cpu_begin; }

warm_up() # who: just-in-time compilers, connections, the store's tables
{
    sink_reset
    "$1_load" --seconds 1
    drain
}

store_info() { "$BUILD/tests/bench/bench-store-info" "$STORE_SOCKET"; }

# What the store did for each message since an earlier store_info: calls of scripts, and bytes of its append-only file.
store_costs() # info messages
{
    awk -v messages="$2" -v RS='[ \n]' -F= 'NF == 2 && !($1 in before) {before[$1] = $2; next} {now[$1] = $2}
        END {printf "calls_per_message=%.3f aof_bytes_per_message=%.0f",
                (now["script_calls"] - before["script_calls"]) / messages, (now["aof_bytes"] - before["aof_bytes"]) / messages}' \
        <<<"$1 $(store_info)"
}

# Accepting alone, and the backlog that is drained then: delivering alone.
measure_accept_and_drain() # who
{
    local who=$1

    "${who}_hold"
    begin
    "${who}_load" --seconds "$LENGTH"
    sample accept "$who" "$LOADED $(cpu_end)"
    wait_until_quiet
    cpu_begin
    "${who}_resume"
    drain
    sample drain "$who" "$(cpu_end)"
    check drain "$who"
}

measure_both() # who: accepting and delivering at once
{
    local before

    begin
    before=$(store_info)
    "$1_load" --seconds "$LENGTH"
    sample both "$1" "$LOADED"
    drain
    sample both "$1" "$(cpu_end) $(store_costs "$before" "$(loaded accepted)")"
    check both "$1"
}

# Latency at a fixed rate, beside what one fsync takes on this disk now.
measure_dispatch() # who
{
    local before

    begin
    sample dispatch "$1" "$("$BUILD/tests/bench/bench-fsync" "$WORK/fsync")"
    before=$(store_info)
    cpu_begin
    "$1_load" --seconds "$LENGTH" --rate "$RATE"
    sample dispatch "$1" "rate=$RATE $LOADED $(cpu_end)"
    drain
    sample dispatch "$1" "$(store_costs "$before" "$(loaded accepted)")"
    check dispatch "$1"
}

measure_single() # who: one session alone, one delivery at a time
{
    "$1_hold"
    sink_reset
    "$1_load" --workspaces 1 --sessions 1 --count "$SINGLE_MESSAGES"
    wait_until_quiet
    cpu_begin
    "$1_resume" 1
    drain
    sample single "$1" "$(cpu_end)"
    check single "$1"
}

measure_participant() # who
{
    "$1_start" || { FAILED=1; return; }
    if [ "$1" = outboxd ]; then measure_rss; fi
    warm_up "$1"
    measure_accept_and_drain "$1"
    measure_both "$1"
    measure_dispatch "$1"
    measure_single "$1"
    "$1_stop"
}

# Accepting alone with the store's file synced every second; what was accepted is thrown away with the store.
measure_everysec() # who
{
    local FSYNC=everysec

    "$1_start" || { FAILED=1; return; }
    warm_up "$1"
    "$1_hold"
    begin
    "$1_load" --seconds "$LENGTH"
    sample everysec "$1" "$LOADED $(cpu_end)"
    say "run $RUN, everysec, $1: $LOADED"
    "$1_stop"
}

measure_script_limit() # row
{
    local line

    store_start store
    wait_until_quiet
    cpu_begin
    line=$("$BUILD/tests/bench/bench-script-limit" -s "$STORE_SOCKET" -c 16 -d 16 -t "$LENGTH") || die "bench-script-limit failed"
    sample "$1" script "$line $(cpu_end)"
    say "run $RUN, $1, script alone: $line"
    store_stop store
}
