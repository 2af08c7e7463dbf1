/*
 * Access control.
 *
 * With tokens, only clients that send one have access. Without tokens, programs on this machine
 * have access, and in browsers only the gateway's own page. A page of another site can make a
 * browser send requests to 127.0.0.1, which Origin or Sec-Fetch-Site reveals; and it can make its
 * own name resolve to 127.0.0.1 (DNS rebinding), which the name in Host reveals.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include <stdbool.h>

struct exchange;

/*
 * Returns whether the request's framing is unambiguous, so that a proxy in front must see the same
 * end, and whether it has exactly one Host and valid header names. If not, answers and has the
 * connection closed; CONNECT closes it without an answer.
 */
bool access_is_plain(const struct exchange *exchange);

/* Returns whether the request may be served; if not, answers it. */
bool access_is_granted(const struct exchange *exchange, bool is_public);

#endif
