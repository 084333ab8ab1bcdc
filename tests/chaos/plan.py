"""Which faults come when: a function of the seed alone, so that a seed names a run. What they meet can't be: time passes as
it does.
"""
import collections
import random

Row = collections.namedtuple('Row', 'name weight where shortest longest')
#   where    any: some site; embedded, outside: the site with that store; target: the way to some target
#   seconds  how long it lasts: until it is undone, or until what was killed is started again
TABLE = (
    #   name                      weight where       seconds
    Row('kill worker',            6,     'any',      0, 0),
    Row('kill api',               4,     'any',      0, 0),
    Row('kill supervisor',        3,     'any',      0, 1.5),
    Row('kill node',              2,     'any',      0, 1.5),
    Row('kill store',             4,     'any',      0, 3),
    Row('stop worker',            4,     'any',      0.2, 8),     # beyond the watchdog, sometimes
    Row('stop api',               3,     'any',      0.2, 8),
    Row('stop supervisor',        3,     'any',      0.2, 8),
    Row('stop store',             3,     'any',      0.2, 4),
    Row('stop node',              1,     'any',      0.2, 4),
    Row('TERM',                   1,     'any',      0, 0.5),
    Row('QUIT',                   1,     'any',      0, 0.5),
    Row('HUP, other limits',      3,     'any',      0, 0),
    Row('HUP, bad configuration', 1,     'any',      0, 0),
    Row('USR2',                   2,     'any',      0, 0),
    Row('TTIN or TTOU',           1,     'any',      0, 0),
    Row('rewrite of the AOF',     2,     'any',      0, 0),
    Row('disk full',              2,     'any',      0.5, 4),
    Row('step store clock',       3,     'any',      0, 0),
    Row('step node clock',        2,     'any',      0, 0),
    Row('store: cut',             3,     'outside',  0, 0),
    Row('store: truncate',        2,     'outside',  0, 0),
    Row('store: half-close',      2,     'outside',  0, 0),
    Row('store: delay',           2,     'outside',  1, 5),
    Row('store: black hole',      2,     'outside',  0.3, 14),    # beyond what makes a node count as dead, sometimes
    Row('store: refuse',          1,     'outside',  0.2, 3),
    Row('store: late',            2,     'outside',  0.1, 0.4),
    Row('target: cut',            2,     'target',   0, 0),
    Row('target: truncate',       2,     'target',   0, 0),
    Row('target: half-close',     2,     'target',   0, 0),
    Row('target: delay',          2,     'target',   1, 5),
    Row('target: black hole',     2,     'target',   0.3, 4),
    Row('target: refuse',         2,     'target',   0.2, 4),
    Row('target: late',           3,     'target',   0.3, 1.5),
    Row('target: mood',           6,     'target',   1, 5),
    Row('target: new secret',     1,     'any',      0, 0),
)
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 1.2

# pause: seconds before it; place: which site or target; pick, draw: numbers from 0 to 1 for whatever else is to be chosen
Deed = collections.namedtuple('Deed', 'number pause name place lasts pick draw')


def deeds(seed, places):
    """Without end. places: {where: [names]}; a row whose `where` has none is left out. Each round of the table's total weight
    holds every row as often as its weight says, so that also a short run has some of everything."""
    dice = random.Random(seed)
    rows = [row for row in TABLE if places.get(row.where)]
    number = 0
    while True:
        spread = [row for row in rows for _ in range(row.weight)]
        dice.shuffle(spread)
        # Everything once comes first: the rest of the round follows.
        first = list(dict.fromkeys(spread))
        for row in first:
            spread.remove(row)
        for row in first + spread:
            number += 1
            yield Deed(number, dice.uniform(SHORTEST_PAUSE, LONGEST_PAUSE), row.name, dice.choice(places[row.where]),
                       dice.uniform(row.shortest, row.longest), dice.random(), dice.random())
