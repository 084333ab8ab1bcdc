/* Who is connected, by address: how many connections each has, so that one stranger's take no place
 * from another. Loop thread only. Contract §7, §11. */
#ifndef API_PEERS_H
#define API_PEERS_H

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct peer;
struct sockaddr;

#define PEER_BUCKETS 1024

struct peers {
    struct peer *buckets[PEER_BUCKETS];
    unsigned char key[16]; /* drawn, so that nobody can choose addresses of one bucket */
};

/* One address: an IPv4 address, or an IPv6 network of 64 bits (whoever has one address of it has
 * them all). All local sockets are one. */
struct peer {
    uint64_t network;                /* of 4 bytes or of 8 */
    int family;                      /* AF_INET, AF_INET6 or AF_UNIX */
    uint32_t count;                  /* connections that hold a place */
    struct connection *first, *last; /* all of its connections, the oldest first */
    struct peer *behind;             /* in its bucket */
};

void peers_init(struct peers *peers);
/* Made if need be; NULL when out of memory. `address` NULL: a local socket. */
struct peer *peers_get(struct peers *peers, const struct sockaddr *address);
/* NULL: it has no connection. */
struct peer *peers_find(const struct peers *peers, const struct sockaddr *address);
/* Forgets one without connections. */
void peers_let_go(struct peers *peers, struct peer *peer);
/* The one that holds the most places; NULL: nobody is there. In proportion to the number of peers:
 * asked for only when every place is taken. */
struct peer *peers_largest(const struct peers *peers);

#endif
