"""The page that tells what a run did and whether every invariant held."""
import collections

from plan import TABLE

PAGE = 110


def quantile(values, share):
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def milliseconds(values):
    values = sorted(values)
    return '  '.join(f'{name} {quantile(values, share) * 1000:.0f}'
                     for name, share in (('p50', 0.5), ('p90', 0.9), ('p99', 0.99), ('max', 1)))


def listed(counts, between=', '):
    """`a 3, b 1`, in lines that fit the page."""
    lines, line = [], ''
    for word in (f'{name} {count}' for name, count in sorted(counts.items(), key=str)):
        if line and len(line) + len(word) > PAGE - 8:
            lines.append(line)
            line = ''
        line += (between if line else '') + word
    return '\n    '.join(lines + [line or 'none'])


def latencies(checker):
    """Seconds by kind: until the acknowledgement, and from there to the arrival of what had its effect."""
    accepts, deliveries = collections.defaultdict(list), collections.defaultdict(list)
    for m in checker.acknowledged.values():
        accepts[m.kind.name].append(m.acknowledged - m.began)
        if checker.stored[m.number]:
            deliveries[m.kind.name].append(max(0.0, checker.stored[m.number][0].time - m.acknowledged))
    return accepts, deliveries


def page(run, checker, invariants):
    """run: what run.py has gathered. The whole text."""
    accepts, deliveries = latencies(checker)
    kinds = collections.defaultdict(collections.Counter)
    for m in checker.acknowledged.values():
        counts = kinds[m.kind.name]
        counts['acknowledged'] += 1
        counts['sent'] += checker.is_sent(m)
        counts['errors'] += checker.is_error_by_design(m)
        counts['stored'] += bool(checker.stored[m.number])
        counts['requests'] += len(checker.arrived[m.number])
        counts['again'] += max(0, len(checker.stored[m.number]) - 1)
    failed = [i for i in invariants if not i.holds]
    out = [f'outboxd chaos: seed {run.seed}, {run.minutes:g} min: ' +
           ('everything held' if not failed else f'{len(failed)} INVARIANTS DID NOT HOLD')]

    def section(title):
        out.append(f'\n{title}')

    section(f'Faults: {sum(run.done.values())} in {run.chaos_s:.0f} s of {run.whole_s:.0f} s, '
            f'{sum(run.missed.values())} more had nobody to meet')
    out.append('    ' + listed(run.done))
    out.append('  never came: ' + (', '.join(row.name for row in TABLE if not run.done[row.name]) or 'nothing'))
    out.append('  disk full: ' + '; '.join(f'{site} {how}' for site, how in run.disks.items()))
    out.append('  on the wires: ' + listed(run.wire_counts))
    out.append('  answers of targets that were not as they should be: ' + str(sum(run.moods.values())))
    out.append('    ' + listed(run.moods))
    out.append('  counted since the last start of each supervisor: ' + listed(run.metrics))
    out.append('  supervisors started: ' + listed(run.starts) + '; stores began to serve: ' + listed(run.store_starts))

    total = len(checker.acknowledged)
    section(f'Messages: {total} acknowledged, {total / max(run.load_s, 1):.0f}/s while the load lasted')
    out.append(f'    {"kind":10}{"acknowledged":>13}{"sent":>8}{"errors by design":>18}{"had effect":>12}{"requests":>10}'
               f'{"again, same key":>17}')
    for name, counts in kinds.items():
        out.append(f'    {name:10}{counts["acknowledged"]:13}{counts["sent"]:8}{counts["errors"]:18}{counts["stored"]:12}'
                   f'{counts["requests"]:10}{counts["again"]:17}')
    out.append('  clients: ' + listed(collections.Counter({**run.answers, 'no answer': run.no_answers})) +
               f'; posts of one message: {max((m.posts for m in checker.messages.values()), default=0)} at most')

    section('Latency (ms)')
    for name in kinds:
        out.append(f'    {name:10} until acknowledged: {milliseconds(accepts[name])}    from there to the target: '
                   f'{milliseconds(deliveries[name])}')

    section('Event streams')
    for name, reader in run.readers.items():
        out.append(f'    {name}: {sum(reader.types.values())} events over {reader.connections} connections, '
                   f'{len(reader.resets)} resets')
        out.append(f'      {listed(reader.types)}')
        out.append(f'      sent via: {listed(reader.vias)}')

    section(f'Afterwards: all acknowledged after {run.acknowledged_s:.1f} s, the outbox empty after {run.drained_s:.1f} s')

    section(f'Processor time: {run.own_cpu_s:.0f} s of clients, wires, targets and checker, {run.cpu_s:.0f} s of outboxd and its stores')

    section('Invariants (every number must be 0)')
    for i in invariants:
        out.append(f'    {"ok    " if i.holds else "FAILED"}  {i.count:6}  {i.name}')
        out.extend(f'                    {str(example)[:400]}' for example in i.examples)
    if failed:
        out.append(f'\nagain: {run.again}')
    return '\n'.join(out) + '\n'
