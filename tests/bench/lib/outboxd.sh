# shellcheck shell=bash
# What is measured of outboxd alone and quickly: its memory, one worker by itself, batches, claims. Sourced by run, after
# phases.sh.

megabytes() { calculate "$1 * 1024 / 1e6"; } # of kB

# Of each process, just started: nothing was accepted yet.
measure_rss()
{
    sleep 2
    sample rss outboxd "supervisor_mb=$(megabytes "$(rss_kb "${PIDS[outboxd]}")") \
api_mb=$(megabytes "$(rss_kb "${WATCHED[api]}")") worker_mb=$(megabytes "$(rss_kb "${WORKERS[0]}")")"
}

# One worker drains a backlog: what a delivery costs its core, libcurl included.
measure_worker()
{
    local OUTBOXD_SETTINGS='workers: 1' before usec

    outboxd_start || { FAILED=1; return; }
    warm_up outboxd
    outboxd_hold
    begin
    outboxd_load --seconds "$LENGTH"
    wait_until_quiet
    cpu_begin
    before=$(run_ns "${WORKERS[0]}")
    outboxd_resume
    drain
    usec=$(calculate "($(run_ns "${WORKERS[0]}") - $before) / 1000 / $(loaded accepted)")
    sample worker outboxd "$(cpu_end) cpu_us_per_post=$usec posts_per_core_s=$(calculate "1e6 / $usec")"
    check worker outboxd
    outboxd_stop
}

# Messages a second in batches, beside one by one, both with nothing delivered meanwhile.
measure_batch()
{
    local one

    outboxd_start || { FAILED=1; return; }
    if [ "$(http_send "$API_PORT" POST /v1/batch application/x-ndjson '')" = 404 ]; then
        say "this outboxd has no POST /v1/batch: its row is skipped"
        outboxd_stop
        return
    fi
    warm_up outboxd
    outboxd_hold
    begin
    outboxd_load --seconds "$LENGTH"
    one=$(loaded accepts_per_s)
    outboxd_resume
    drain
    outboxd_hold
    begin
    outboxd_batches --seconds "$LENGTH"
    sample batch outboxd "$LOADED $(cpu_end) one_by_one_per_s=$one"
    outboxd_resume
    drain
    check batch outboxd
    outboxd_stop
}

# Two stores that differ in the number of sessions only, measured in turn; both are left running, as `few` and `many`.
claim_stores() # row few many: starts, fills and measures them
{
    local few line

    store_start few
    few=$STORE_SOCKET
    store_start many
    wait_until_quiet
    line=$("$BUILD/tests/bench/bench-claim-cost" "$few" "$2" "$STORE_SOCKET" "$3" 20) || die "bench-claim-cost failed"
    say "run $RUN, $1: $line"
    # claim_usec=FEW,MANY: a name each.
    sample "$1" outboxd "$(sed -E 's/(claim|idle|accept)_usec=([0-9.]+),([0-9.]+)/\1_few_usec=\2 \1_many_usec=\3/g' <<<"$line")"
}

measure_claims()
{
    claim_stores claim 100 "$CLAIM_SESSIONS"
    store_stop few
    store_stop many
}
