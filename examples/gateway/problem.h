/*
 * The failures of requests, each with a stable code, an HTTP status and a title. Answers carry them
 * as problem details (RFC 9457).
 */
#ifndef PROBLEM_H
#define PROBLEM_H

/* XX(NAME, code, HTTP status, title) */
#define PROBLEM_MAP(XX)                                                                            \
    XX(BAD_REQUEST, "bad-request", 400, "The request makes no sense")                              \
    XX(BAD_KEY, "bad-key", 400, "The key is not valid")                                            \
    XX(BAD_JSON, "bad-json", 400, "The body is not the JSON object that is expected")              \
    XX(BAD_FIELD, "bad-field", 400, "A field of the body is not valid")                            \
    XX(UNAUTHORIZED, "unauthorized", 401, "A bearer token is needed")                              \
    XX(FORBIDDEN_HOST, "forbidden-host", 403, "The request was meant for another server")          \
    XX(FORBIDDEN_ORIGIN, "forbidden-origin", 403, "Pages of other sites may not ask")              \
    XX(NOT_FOUND, "not-found", 404, "There is no such path")                                       \
    XX(NO_SUCH_LOCK, "no-such-lock", 404, "The lock is not held, or no longer")                    \
    XX(UNKNOWN_LOCK, "unknown-lock", 404, "The lock is another gateway's, or an earlier run's")    \
    XX(BAD_METHOD, "bad-method", 405, "The path does not have this method")                        \
    XX(HELD, "held", 409, "Others hold the key")                                                   \
    XX(LOST, "lost", 409, "The lock was lost")                                                     \
    XX(BUSY, "busy", 409, "Another request about the lock is under way")                           \
    XX(TOO_LARGE, "too-large", 413, "The body is too large")                                       \
    XX(NOT_JSON, "not-json", 415, "The body has to be application/json")                           \
    XX(NO_ACCESS, "no-access", 502, "The masters refuse the gateway")                              \
    XX(NO_QUORUM, "no-quorum", 503, "Too few masters answered to decide")                          \
    XX(EXPIRED, "expired", 503, "Masters answered too late")                                       \
    XX(FULL, "full", 503, "The gateway has as many as it may")                                     \
    XX(NO_MEMORY, "no-memory", 503, "The gateway is out of memory")                                \
    XX(CLOSING, "closing", 503, "The gateway is being closed")

enum problem {
#define PROBLEM_ENUM(name, code, status, title) PROBLEM_##name,
    PROBLEM_MAP(PROBLEM_ENUM)
#undef PROBLEM_ENUM
};

#endif
