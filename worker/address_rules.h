/* Which addresses a target may have: ranges allowed and denied, looked at after name resolution, on
 * the address that is really connected. Pure. Contract §11. */
#ifndef WORKER_ADDRESS_RULES_H
#define WORKER_ADDRESS_RULES_H

#include <stdbool.h>

struct text_list;
struct address_rules;

/* Ranges as text ("10.0.0.0/8", "fe80::/10", "192.0.2.1"). 0, -EINVAL for a malformed one
 * (`ret_bad` names it), -ENOMEM. */
int address_rules_create(const struct text_list *allow, const struct text_list *deny,
                         struct address_rules **ret, const char **ret_bad);
void address_rules_destroy(struct address_rules **rules);

/* Denied ranges first; then, if any are allowed, one of those must hold it. IPv4-mapped IPv6 counts
 * as IPv4. A Unix socket or what is no address is not permitted. */
bool address_rules_permit(const struct address_rules *rules, const char *address);

#endif
