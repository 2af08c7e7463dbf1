/*
 * The right to ask.
 *
 * With tokens, clients have it that show one. Without, programs of this machine have it, and no
 * page of a browser but the gateway's own. A page of another site can have a browser send requests
 * to 127.0.0.1, which are told by their Origin or Sec-Fetch-Site; and it can have its own name lead
 * to 127.0.0.1 (DNS rebinding), which is told by the name in Host.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include <stdbool.h>

struct exchange;

/*
 * Returns whether the request's framing leaves no doubt where it ends, which a proxy in front might
 * see otherwise; and whether it has one Host, and headers with names. Answers otherwise, and has
 * the connection closed; closes it without an answer to CONNECT.
 */
bool access_is_plain(const struct exchange *exchange);

/* Returns whether the request may be served; answers otherwise. */
bool access_is_granted(const struct exchange *exchange, bool is_public);

#endif
