# shellcheck shell=bash
# The heavy rows: many sessions, many deliveries in flight, much to recover. Sourced by run, after outboxd.sh.

own_processes() { echo "${PIDS[outboxd]} ${WATCHED[api]} ${WORKERS[*]}"; }

# What our processes need when nothing happens, at a store that is filled.
measure_quiet() # name: samples NAME_cpu and NAME_rss_mb
{
    local processes before

    outboxd_launch
    outboxd_await || { FAILED=1; outboxd_end; return; }
    sleep "$SETTLE_SECONDS" # the few entries that are due go out
    processes=$(own_processes)
    # shellcheck disable=SC2086 # several
    before=$(run_ns $processes)
    sleep "$QUIET_SECONDS"
    # shellcheck disable=SC2086
    sample million outboxd "$1_cpu=$(calculate "($(run_ns $processes) - $before) / 1e7 / $QUIET_SECONDS") \
$1_rss_mb=$(megabytes "$(rss_kb $processes)")"
    outboxd_end
}

# A million sessions, each with one entry that waits or failed, beside a thousand.
measure_million()
{
    claim_stores million 1000 "$MILLION"
    STORE_SOCKET=$WORK/few/s.sock
    measure_quiet few
    STORE_SOCKET=$WORK/many/s.sock
    measure_quiet many
    store_stop few
    store_stop many
}

# Many deliveries to a target that does not answer yet, and what they do to others.
measure_in_flight()
{
    local port before
    local OUTBOXD_SETTINGS=$'workers: 2\nmax_in_flight: 16384\ntargets: {max_in_flight: 16384}'

    if [ "$(ulimit -n)" -lt $((IN_FLIGHT + 1000)) ]; then
        say "only $(ulimit -n) open files allowed: $IN_FLIGHT in flight are skipped (ulimit -n)"
        FAILED=1
        return
    fi
    port=$(free_port)
    sink_run slow "$port" --delay-ms 300000
    outboxd_start || { FAILED=1; return; }
    [ "$(http_send "$API_PORT" PUT /v1/workspaces/slow/target application/json "{\"url\":\"http://127.0.0.1:$port\"}")" = 200 ] ||
        die "the slow target was not taken"
    warm_up outboxd
    before=$(pss_kb "${WORKERS[@]}")
    outboxd_load --path '/v1/workspaces/slow/sessions/{session}/entries' --sessions "$IN_FLIGHT" --count "$IN_FLIGHT"
    wait_for 60 sink_has "$IN_FLIGHT" "$port" || { say "WRONG: $(sink_count "$port") of $IN_FLIGHT in flight"; FAILED=1; }
    sample inflight outboxd "kb_each=$(calculate "($(pss_kb "${WORKERS[@]}") - $before) * 1.024 / $IN_FLIGHT")"
    begin
    outboxd_load --seconds "$LENGTH" --rate "$RATE"
    sample inflight outboxd "$LOADED $(cpu_end)"
    drain
    check inflight outboxd
    stop_one slow
    stop_one outboxd QUIT
    outboxd_stop
}

now_s() { cut -d ' ' -f 1 /proc/uptime; } # as CLOCK_MONOTONIC, in hundredths

# Everything was killed with many deliveries in flight; store and outboxd are started on what is left.
measure_staged()
{
    local begin store ready

    store_start store
    "$BUILD/tests/bench/bench-stage" "$STORE_SOCKET" "$STAGED" >"$WORK/stage.txt" || die "bench-stage failed"
    stop_one store KILL
    wait_until_quiet
    begin=$(now_s)
    store_run store
    store=$(now_s)
    outboxd_launch
    wait_for 120 outboxd_has_started || true
    ready=$(now_s)
    outboxd_await || { FAILED=1; outboxd_stop; return; }
    if ! wait_for 120 sink_has "$STAGED"; then
        say "WRONG, run $RUN, staged: $(sink_count) of $STAGED delivered"
        FAILED=1
    fi
    sink_dump
    sample staged outboxd "store_s=$(calculate "$store - $begin") ready_s=$(calculate "$ready - $begin") \
$(staged_deliveries "$ready")"
    outboxd_stop
}

# From READY to the first delivery (0: before it) and to the last, as the target saw them.
staged_deliveries() # ready
{
    awk -v ready="$1" '{at = $1 / 1e9; if (NR == 1 || at < first) first = at; if (at > last) last = at}
        END {wait = first - ready; if (wait < 0) wait = 0; printf "first_s=%.3f all_s=%.3f", wait, last - ready}' "$WORK/sink.log"
}
