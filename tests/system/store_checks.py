"""What the store says when everything is over: its events, and what must not be left in it. Tests only: walks every key."""

# What outlives an entry: memory of it that expires, the events, what belongs to no entry.
REMEMBERED = ('outboxdone:', 'outboxdedupe:', 'outboxended:')
STAYS = ('outboxev:', 'outboxnode:', 'outboxmeta', 'outboxconf:')


def events(valkey):
    """Every event of every partition, as dictionaries, in the order of each partition's stream."""
    found = []
    for stream in valkey.keys('outboxev:*'):
        start = '-'
        while True:
            page = valkey('XRANGE', stream, start, '+', 'COUNT', 2000)
            for _, fields in page:
                words = [field.decode() for field in fields]
                found.append(dict(zip(words[::2], words[1::2])))
            if len(page) < 2000:
                break
            start = '(' + page[-1][0].decode()
    return found


def count_open(valkey):
    """Entries that are pending, delivering or verifying."""
    return sum(valkey('ZCARD', key) for key in valkey.keys('outboxopen:*'))


def leftovers(valkey):
    """Why a store in which every entry has ended is not as empty as it should be: a list of complaints."""
    wrong = []
    for key in valkey.keys():
        if key.startswith('outboxstat:'):
            counts = valkey('HGETALL', key)
            if any(int(count) != 0 for count in counts[1::2]):
                wrong.append(f'{key}: {counts}')
        elif key.startswith(REMEMBERED):
            if valkey('PTTL', key) <= 0:
                wrong.append(f'{key} stays for ever')
        elif not key.startswith(STAYS):
            wrong.append(key)
    return wrong
