/* A hash table of fixed size: 10,000 connections of as many addresses are ten in each bucket. */
#include "api/peers.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert(sizeof(((struct peers *)0)->key) == crypto_shorthash_KEYBYTES, "siphash's key");

void peers_init(struct peers *peers)
{
    memset(peers->buckets, 0, sizeof(peers->buckets));
    randombytes_buf(peers->key, sizeof(peers->key));
}

static struct peer read_address(const struct sockaddr *address)
{
    struct peer peer = {.family = AF_UNIX};

    if (address && address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

        peer.family = AF_INET;
        memcpy(&peer.network, &v4->sin_addr, sizeof(v4->sin_addr));
    } else if (address && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;

        peer.family = AF_INET6;
        memcpy(&peer.network, &v6->sin6_addr, sizeof(peer.network));
    }
    return peer;
}

static struct peer **place_of(const struct peers *peers, const struct peer *wanted)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t number;

    (void)crypto_shorthash(hash, (const unsigned char *)&wanted->network, sizeof(wanted->network),
                           peers->key); /* can't fail */
    memcpy(&number, hash, sizeof(number));
    /* The table is the caller's, const or not. */
    struct peer **at = (struct peer **)(uintptr_t)&peers->buckets[number % PEER_BUCKETS];

    while (*at && ((*at)->network != wanted->network || (*at)->family != wanted->family)) {
        at = &(*at)->behind;
    }
    return at;
}

struct peer *peers_find(const struct peers *peers, const struct sockaddr *address)
{
    const struct peer wanted = read_address(address);

    return *place_of(peers, &wanted);
}

struct peer *peers_get(struct peers *peers, const struct sockaddr *address)
{
    const struct peer wanted = read_address(address);
    struct peer **at = place_of(peers, &wanted);

    if (!*at) {
        *at = malloc(sizeof(**at));
        if (*at) {
            **at = wanted;
        }
    }
    return *at;
}

void peers_let_go(struct peers *peers, struct peer *peer)
{
    if (!peer->first) {
        *place_of(peers, peer) = peer->behind;
        free(peer);
    }
}

struct peer *peers_largest(const struct peers *peers)
{
    struct peer *largest = NULL;

    for (unsigned i = 0; i < PEER_BUCKETS; i++) {
        for (struct peer *peer = peers->buckets[i]; peer; peer = peer->behind) {
            if (!largest || peer->count > largest->count) {
                largest = peer;
            }
        }
    }
    return largest;
}
