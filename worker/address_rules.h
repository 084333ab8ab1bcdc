/* Which addresses a target may have: ranges allowed and denied, looked at after name resolution, on
 * the address that is about to be connected. Pure. Contract §11. */
#ifndef WORKER_ADDRESS_RULES_H
#define WORKER_ADDRESS_RULES_H

#include <stdbool.h>

struct sockaddr;
struct text_list;
struct address_rules;

/* Ranges as text ("10.0.0.0/8", "fe80::/10", "192.0.2.1"). 0, -EINVAL for a malformed one
 * (`ret_bad` names it), -ENOMEM. */
int address_rules_create(const struct text_list *allow, const struct text_list *deny,
                         struct address_rules **ret, const char **ret_bad);
void address_rules_destroy(struct address_rules **rules);

/* Denied ranges first; then, if any are allowed, one of those must hold it. IPv4-mapped IPv6 counts
 * as IPv4. An IPv6 address that a translator or tunnel takes to an IPv4 address (NAT64, 6to4,
 * Teredo and older forms) is denied where that one is; being allowed takes its own range. Never
 * permitted: the unspecified address (0.0.0.0, ::), which means this machine, a Unix socket, what
 * is no address. RFC 4291, 6052, 8215, 3056, 4380. */
bool address_rules_permit(const struct address_rules *rules, const char *address);
/* The same, of a socket's address; its size is that of its family. */
bool address_rules_permit_socket(const struct address_rules *rules, const struct sockaddr *address);

#endif
