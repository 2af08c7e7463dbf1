/*
 * Sends commands to a simulated and to a real master, and compares their answers, so that the
 * simulation cannot drift from Redis. One case is one list of commands, on keys of its own.
 *
 * Answers that hold a remaining TTL may differ by the time that the real server needed.
 */
#include "master.h"

#include "masters.h"
#include "wire/script.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX 10
#define WORDS_OF_STEP_MAX 24

/* Maximum time, in ms, that a real server may need for a case. */
#define SLACK_MS 60000

/* Placeholders for values that a table cannot hold. */
#define RELEASE_TEXT "<release text>"
#define RELEASE_SHA "<release sha>"
#define RENEW_TEXT "<renew text>"
#define RENEW_SHA "<renew sha>"
#define STAY_TEXT "<stay text>"
#define STAY_SHA "<stay sha>"
#define TAKE_TEXT "<take text>"
#define TAKE_SHA "<take sha>"
#define KEEP_TEXT "<keep text>"
#define KEEP_SHA "<keep sha>"
#define PERMIT_TEXT "<permit text>"
#define PERMIT_SHA "<permit sha>"
#define SHARE_TEXT "<share text>"
#define SHARE_SHA "<share sha>"
#define SHARE_KEEP_TEXT "<share keep text>"
#define SHARE_KEEP_SHA "<share keep sha>"
#define SHARE_END_TEXT "<share end text>"
#define SHARE_END_SHA "<share end sha>"
#define WRITE_TEXT "<write text>"
#define WRITE_SHA "<write sha>"
#define WRITE_FENCED_TEXT "<write fenced text>"
#define WRITE_FENCED_SHA "<write fenced sha>"
#define BEAT_TEXT "<beat text>"
#define BEAT_SHA "<beat sha>"
#define PROBE_TEXT "<probe text>"
#define PROBE_SHA "<probe sha>"
#define MARKER REDLOCK_MARKER_KEY
#define EXPIRE "<wait until it has expired>" /* and the key */

#define A "0123456789012345678901234567890123456789"
#define B "abcdefabcdefabcdefabcdefabcdefabcdefabcd"
#define LONG "3000000"
#define LONGER "3600000"

struct test_case {
    const char *name;
    const char *steps[STEPS_MAX][WORDS_OF_STEP_MAX];
};

#define BEAT(last)                                                                                 \
    { "EVAL", BEAT_TEXT, "1", MARKER, last }
#define STAY(token, ms)                                                                            \
    { "EVAL", STAY_TEXT, "1", "k", token, ms }
#define TAKE(token, ttl, fence, step, idle)                                                        \
    { "EVAL", TAKE_TEXT, "2", "k", "k::fence", token, ttl, "1", "1", fence, step, idle }
#define TAKE_TWO(token, ttl)                                                                       \
    { "EVAL", TAKE_TEXT, "2", "k", "l", token, ttl, "2", "0", "0", "1", "0" }
#define TAKE_TWO_FENCED(token, ttl, fence)                                                         \
    {                                                                                              \
        "EVAL", TAKE_TEXT, "4", "k", "l", "k::fence", "l::fence", token, ttl, "2", "1", fence,     \
            "1", "0"                                                                               \
    }
#define KEEP(token, ttl, fence, idle)                                                              \
    { "EVAL", KEEP_TEXT, "2", "k", "k::fence", token, ttl, fence, idle }
#define PERMIT(key, token, fence, permits)                                                         \
    { "EVAL", PERMIT_TEXT, "1", key, token, LONG, fence, LONGER, permits }
#define SHARE(value, ttl)                                                                          \
    { "EVAL", SHARE_TEXT, "3", "k", "k::readers", "k::writer", value, ttl, "1" }
#define SHARE_TOP_UP(value, ttl)                                                                   \
    { "EVAL", SHARE_TEXT, "3", "k", "k::readers", "k::writer", value, ttl, "0" }
#define SHARE_KEEP(value, ttl)                                                                     \
    { "EVAL", SHARE_KEEP_TEXT, "2", "k", "k::readers", value, ttl }
#define SHARE_END(value)                                                                           \
    { "EVAL", SHARE_END_TEXT, "2", "k", "k::readers", value }
#define WRITE(token, ttl, intent)                                                                  \
    { "EVAL", WRITE_TEXT, "3", "k", "k::readers", "k::writer", token, ttl, intent }
#define WRITE_FENCED(token, ttl, intent, fence, idle)                                              \
    {                                                                                              \
        "EVAL", WRITE_FENCED_TEXT, "4", "k", "k::readers", "k::writer", "k::fence", token, ttl,    \
            intent, fence, idle                                                                    \
    }
#define READERS                                                                                    \
    { "ZCOUNT", "k::readers", "-inf", "+inf" }
#define NOTE                                                                                       \
    { "PTTL", "k::writer" }
#define COUNTER                                                                                    \
    { "GET", "k::fence" }
#define WAIT                                                                                       \
    {"SET", "w", A, "PX", "1"}, {                                                                  \
        EXPIRE, "w"                                                                                \
    }

static const struct test_case cases[] = {
    {"take: a free key, a new counter",
     {TAKE(A, LONG, "5", "1", "0"), {"GET", "k"}, {"PTTL", "k"}, COUNTER, {"PTTL", "k::fence"}}},
    {"take: the counter is one more than it was, or the hint",
     {{"SET", "k::fence", "7"},
      TAKE(A, LONG, "5", "1", LONGER),
      COUNTER,
      {"PTTL", "k::fence"},
      {"DEL", "k"},
      TAKE(B, LONG, "5", "1", LONGER),
      {"DEL", "k"},
      TAKE(A, LONG, "99", "1", "0"),
      COUNTER}},
    {"take: a top-up does not count",
     {{"SET", "k::fence", "7"}, TAKE(A, LONG, "7", "0", "0"), COUNTER}},
    {"take: a key that is taken is not",
     {{"SET", "k", B, "PX", LONG}, TAKE(A, LONG, "5", "1", "0"), {"GET", "k"}, COUNTER}},
    {"take: what is ours already stays so",
     {{"SET", "k", A, "PX", LONG}, TAKE(A, LONGER, "5", "0", "0"), {"PTTL", "k"}, COUNTER}},
    {"take: a list, a key without expiry, a counter that is none",
     {{"LPUSH", "k", "x"},
      TAKE(A, LONG, "5", "1", "0"),
      {"DEL", "k"},
      {"SET", "k", B},
      TAKE(A, LONG, "5", "1", "0"),
      {"DEL", "k"},
      {"SET", "k::fence", "seven"},
      TAKE(A, LONG, "5", "1", "0"),
      {"GET", "k"}}},
    {"take: a counter that is a list", {{"LPUSH", "k::fence", "1"}, TAKE(A, LONG, "5", "1", "0")}},
    {"take: counters that cannot be counted on",
     {{"SET", "k::fence", "9007199254740991"},
      TAKE(A, LONG, "5", "1", "0"),
      COUNTER,
      {"SET", "k::fence", "-1"},
      TAKE(A, LONG, "5", "1", "0"),
      {"SET", "k::fence", "inf"},
      TAKE(A, LONG, "5", "1", "0"),
      {"SET", "k::fence", "1.5"},
      TAKE(A, LONG, "5", "1", "0"),
      {"GET", "k"}}},
    {"take: the last counter of all, and nan",
     {{"SET", "k::fence", "9007199254740990"},
      TAKE(A, LONG, "5", "1", "0"),
      COUNTER,
      KEEP(A, LONG, "5", "0"),
      {"SET", "k::fence", "nan"},
      KEEP(A, LONG, "5", "0"),
      COUNTER}},
    {"take: numbers as large as a wall clock's",
     {TAKE(A, LONG, "9007199254740000", "1", "0"), {"DEL", "k"}, TAKE(A, LONG, "5", "1", "0")}},
    {"take: many at once",
     {{"SET", "l", B, "PX", LONG},
      {"EVAL", TAKE_TEXT, "4", "k", "k::fence", "l", "l::fence", A,   LONG, "1", "1",
       "5",    "1",       "0", B,   LONG,       "1", "1",        "6", "0",  "0"},
      COUNTER,
      {"GET", "l::fence"}}},
    {"take: several keys, which are free",
     {TAKE_TWO(A, LONG), {"GET", "k"}, {"GET", "l"}, {"PTTL", "l"}, {"GET", "k::fence"}}},
    {"take: several keys, of which one is taken",
     {{"SET", "l", B, "PX", LONG}, TAKE_TWO(A, LONG), {"GET", "k"}, {"GET", "l"}}},
    {"take: of several keys, that which is held longest",
     {{"SET", "k", B, "PX", LONGER}, {"SET", "l", B, "PX", LONG}, TAKE_TWO(A, LONG)}},
    {"take: several keys, of which one is ours",
     {{"SET", "l", A, "PX", LONG}, TAKE_TWO(A, LONGER), {"PTTL", "k"}, {"PTTL", "l"}}},
    {"take: several keys, of which one is a list, or never expires",
     {{"LPUSH", "l", "x"},
      TAKE_TWO(A, LONG),
      {"SET", "k", B, "PX", LONG},
      TAKE_TWO(A, LONG),
      {"DEL", "l"},
      {"SET", "l", B},
      TAKE_TWO(A, LONG)}},
    {"take: several keys with counters that differ",
     {{"SET", "k::fence", "7"},
      {"SET", "l::fence", "9"},
      TAKE_TWO_FENCED(A, LONG, "5"),
      {"GET", "k::fence"},
      {"GET", "l::fence"}}},
    {"take: several keys, and a counter that is none",
     {{"SET", "l::fence", "seven"},
      TAKE_TWO_FENCED(A, LONG, "5"),
      {"GET", "k"},
      {"GET", "k::fence"}}},
    {"stay: ours is nobody's, for so long",
     {{"SET", "k", A "/me", "PX", LONGER},
      STAY(A "/me", LONG),
      {"GET", "k"},
      {"PTTL", "k"},
      STAY(A "/me", LONGER),
      {"PTTL", "k"}}},
    {"stay: another's is left alone, and what is gone stays so",
     {{"SET", "k", B, "PX", LONGER},
      STAY(A, LONG),
      {"GET", "k"},
      {"DEL", "k"},
      STAY(A, LONG),
      {"GET", "k"}}},
    {"stay: the script is remembered",
     {{"EVALSHA", STAY_SHA, "1", "k", A, LONG},
      STAY(A, LONG),
      {"EVALSHA", STAY_SHA, "1", "k", A, LONG}}},
    {"take: the script is remembered",
     {{"EVALSHA", TAKE_SHA, "2", "k", "k::fence", A, LONG, "1", "1", "5", "1", "0"},
      TAKE(A, LONG, "5", "1", "0"),
      {"EVALSHA", TAKE_SHA, "2", "k", "k::fence", B, LONG, "1", "1", "5", "1", "0"}}},
    {"keep: ours is extended, and its counter raised",
     {TAKE(A, LONG, "5", "1", "0"),
      KEEP(A, LONGER, "9", LONGER),
      {"PTTL", "k"},
      COUNTER,
      {"PTTL", "k::fence"},
      KEEP(A, LONG, "7", "0"),
      {"PTTL", "k"},
      COUNTER,
      {"PTTL", "k::fence"}}},
    {"keep: a counter that is not behind lives on, and is not written",
     {TAKE(A, LONG, "5", "1", LONG),
      {"SET", "k::fence", "007"},
      KEEP(A, LONG, "5", LONGER),
      COUNTER,
      {"PTTL", "k::fence"},
      {"PEXPIRE", "k::fence", LONG},
      KEEP(A, LONG, "5", LONGER),
      {"PTTL", "k::fence"},
      KEEP(A, LONG, "5", "0"),
      {"PTTL", "k::fence"}}},
    {"keep: another's, a missing one, a list",
     {TAKE(A, LONG, "5", "1", "0"),
      KEEP(B, LONG, "9", "0"),
      COUNTER,
      {"DEL", "k"},
      KEEP(A, LONG, "9", "0"),
      COUNTER,
      {"LPUSH", "k", "x"},
      KEEP(A, LONG, "9", "0"),
      COUNTER}},
    {"keep: a counter that was lost",
     {TAKE(A, LONG, "5", "1", "0"), {"DEL", "k::fence"}, KEEP(A, LONG, "9", "0"), COUNTER}},
    {"keep: a counter that is none",
     {{"SET", "k", A, "PX", LONG},
      {"SET", "k::fence", "seven"},
      KEEP(A, LONGER, "9", "0"),
      {"PTTL", "k"}}},
    {"keep: the script is remembered",
     {{"EVALSHA", KEEP_SHA, "2", "k", "k::fence", A, LONG, "5", "0"},
      KEEP(A, LONG, "5", "0"),
      {"EVALSHA", KEEP_SHA, "2", "k", "k::fence", A, LONG, "5", "0"}}},
    {"permit: a free one",
     {PERMIT("k:2", A, "0", "4"), {"GET", "k:2"}, {"PTTL", "k:2"}, {"GET", "k:2::fence"}}},
    {"permit: one that is taken, and which are free",
     {{"SET", "k:0", A, "PX", LONG},
      {"SET", "k:2", B, "PX", LONG},
      PERMIT("k:0", B, "0", "4"),
      PERMIT("k:2", A, "0", "3"),
      PERMIT("k:0", B, "0", "1"),
      {"GET", "k:0"},
      {"GET", "k:1"}}},
    {"permit: four a digit",
     {{"SET", "k:0", A, "PX", LONG},
      {"SET", "k:5", A, "PX", LONG},
      PERMIT("k:0", B, "0", "4"),
      PERMIT("k:0", B, "0", "5"),
      PERMIT("k:0", B, "0", "8"),
      PERMIT("k:0", B, "0", "9"),
      PERMIT("k:0", B, "0", "256")}},
    {"permit: the last of as many as there may be, and one that has expired",
     {{"SET", "k:254", A, "PX", "1"},
      {EXPIRE, "k:254"},
      {"SET", "k:253", A, "PX", LONG},
      PERMIT("k:255", A, "0", "256"),
      PERMIT("k:255", B, "0", "256")}},
    {"permit: a name with colons",
     {PERMIT("a:b:0", A, "0", "2"), PERMIT("a:b:0", B, "0", "2"), {"GET", "a:b:0"}}},
    {"permit: what is ours already stays so",
     {PERMIT("k:1", A, "0", "2"), PERMIT("k:1", A, "0", "2"), {"GET", "k:1"}}},
    {"permit: fenced, each by its own counter",
     {PERMIT("k:0", A, "5", "2"),
      PERMIT("k:1", A, "7", "2"),
      {"DEL", "k:0"},
      PERMIT("k:0", B, "5", "2"),
      PERMIT("k:0", A, "9", "2"),
      {"GET", "k:0::fence"},
      {"PTTL", "k:0::fence"},
      {"GET", "k:1::fence"}}},
    {"permit: a list, a key without expiry, a counter that is none",
     {{"LPUSH", "k:0", "x"},
      PERMIT("k:0", A, "0", "2"),
      {"SET", "k:1", B},
      PERMIT("k:1", A, "0", "3"),
      {"SET", "k:2::fence", "seven"},
      PERMIT("k:2", A, "5", "4"),
      {"GET", "k:2"},
      PERMIT("k:2", A, "0", "4")}},
    {"permit: many at once",
     {{"SET", "k:0", A, "PX", LONG},
      {"EVAL", PERMIT_TEXT, "3", "k:0",  "k:1", "l:1", A,    LONG, "0",    LONGER, "3",
       B,      LONG,        "6", LONGER, "3",   A,     LONG, "0",  LONGER, "2"},
      {"GET", "k:1::fence"},
      {"GET", "l:1"}}},
    {"permit: the script is remembered",
     {{"EVALSHA", PERMIT_SHA, "1", "k:0", A, LONG, "0", LONGER, "2"},
      PERMIT("k:0", A, "0", "2"),
      {"EVALSHA", PERMIT_SHA, "1", "k:0", B, LONG, "0", LONGER, "2"}}},
    {"share: a free key",
     {SHARE(A, LONG), {"GET", "k"}, {"PTTL", "k"}, {"PTTL", "k::readers"}, READERS}},
    {"share: the key lives as long as the last of its readers",
     {SHARE(A, LONG), SHARE(B, LONGER), READERS, {"PTTL", "k"}, {"PTTL", "k::readers"}}},
    {"share: nobody's share is shortened",
     {SHARE(A, LONGER), SHARE(B, LONG), SHARE(A, LONG), {"PTTL", "k"}, READERS}},
    {"share: a key that is taken is not",
     {{"SET", "k", B, "PX", LONG}, SHARE(A, LONGER), {"GET", "k"}, {"PTTL", "k"}, READERS}},
    {"share: a list, a key without expiry",
     {{"LPUSH", "k", "x"}, SHARE(A, LONG), {"DEL", "k"}, {"SET", "k", B}, SHARE(A, LONG)}},
    {"share: a key that only looks shared",
     {{"SET", "k", "shared", "PX", LONG},
      SHARE(A, LONGER),
      SHARE_KEEP(A, LONGER),
      SHARE_END(A),
      {"PTTL", "k"},
      WRITE(A, LONG, LONG),
      NOTE}},
    {"share: nor one without expiry, or with a list of another kind",
     {{"SET", "k", "shared"},
      {"ZADD", "k::readers", "9007199254740991", A},
      SHARE(A, LONG),
      SHARE_END(A),
      {"PTTL", "k"},
      {"DEL", "k", "k::readers"},
      {"SET", "k", "shared", "PX", LONG},
      {"LPUSH", "k::readers", "x"},
      SHARE(A, LONG)}},
    {"share: a list that was left behind is none",
     {SHARE(A, LONG), {"DEL", "k"}, SHARE(B, LONG), READERS, SHARE_KEEP(A, LONG)}},
    {"share: nobody is let in while a writer waits, but who is in",
     {SHARE(A, LONG),
      WRITE(B, LONG, LONG),
      SHARE(B, LONG),
      SHARE(A, LONGER),
      READERS,
      SHARE_TOP_UP(B, LONG),
      READERS,
      {"DEL", "k"},
      SHARE(A, LONG),
      {"GET", "k"}}},
    {"share: a note without expiry is none", {{"SET", "k::writer", B}, SHARE(A, LONG)}},
    {"share: many at once",
     {{"SET", "l", B, "PX", LONG},
      {"EVAL", SHARE_TEXT,   "9",         "k", "k::readers", "k::writer",
       "l",    "l::readers", "l::writer", "k", "k::readers", "k::writer",
       A,      LONG,         "1",         A,   LONG,         "1",
       B,      LONGER,       "1"},
      READERS,
      {"PTTL", "k"}}},
    {"share: the script is remembered",
     {{"EVALSHA", SHARE_SHA, "3", "k", "k::readers", "k::writer", A, LONG, "1"},
      SHARE(A, LONG),
      {"EVALSHA", SHARE_SHA, "3", "k", "k::readers", "k::writer", A, LONG, "1"}}},
    {"share, kept: ours is extended, and never shortened",
     {SHARE(A, LONG), SHARE_KEEP(A, LONGER), {"PTTL", "k"}, SHARE_KEEP(A, LONG), {"PTTL", "k"}}},
    {"share, kept: others' is not ours, nor is a key that is gone",
     {SHARE(A, LONG),
      SHARE_KEEP(B, LONGER),
      READERS,
      {"PTTL", "k"},
      {"DEL", "k"},
      SHARE_KEEP(A, LONG),
      {"GET", "k"},
      {"SET", "k", B, "PX", LONG},
      SHARE_KEEP(A, LONGER)}},
    {"share, kept: who has expired is dropped, and does not come back",
     {SHARE(A, LONG), SHARE(B, "1"), WAIT, READERS, SHARE_KEEP(B, LONG), SHARE_KEEP(A, LONG),
      READERS}},
    {"share, kept: the script is remembered",
     {{"EVALSHA", SHARE_KEEP_SHA, "2", "k", "k::readers", A, LONG},
      SHARE_KEEP(A, LONG),
      {"EVALSHA", SHARE_KEEP_SHA, "2", "k", "k::readers", A, LONG}}},
    {"share, ended: the last one frees the key",
     {SHARE(A, LONG),
      SHARE(B, LONGER),
      SHARE_END(B),
      {"PTTL", "k"},
      {"PTTL", "k::readers"},
      SHARE_END(B),
      SHARE_END(A),
      {"PTTL", "k"},
      READERS,
      SHARE_END(A)}},
    {"share, ended: another's key stays",
     {SHARE(A, LONG),
      {"SET", "k", B, "PX", LONG},
      SHARE_END(A),
      {"GET", "k"},
      {"DEL", "k"},
      SHARE_END(A)}},
    {"share, ended: one that has expired is not ours to end",
     {SHARE(A, LONG), SHARE(B, "1"), WAIT, SHARE_END(B), {"GET", "k"}, SHARE_END(A), READERS}},
    {"share, ended: the script is remembered",
     {{"EVALSHA", SHARE_END_SHA, "2", "k", "k::readers", A},
      SHARE_END(A),
      {"EVALSHA", SHARE_END_SHA, "2", "k", "k::readers", A}}},
    {"write: a free key", {WRITE(A, LONG, LONG), {"GET", "k"}, {"PTTL", "k"}, NOTE}},
    {"write: what is ours already stays so",
     {{"SET", "k", A, "PX", LONG}, WRITE(A, LONGER, LONG), {"PTTL", "k"}}},
    {"write: readers are asked to make room",
     {SHARE(A, LONGER),
      WRITE(B, LONG, LONG),
      NOTE,
      {"GET", "k::writer"},
      WRITE(A, LONG, "100000"),
      NOTE,
      WRITE(A, LONG, LONGER),
      NOTE,
      {"GET", "k::writer"}}},
    {"write: or are not", {SHARE(A, LONG), WRITE(B, LONG, "0"), NOTE}},
    {"write: another holder is not",
     {{"SET", "k", A, "PX", LONG},
      WRITE(B, LONG, LONG),
      NOTE,
      {"DEL", "k"},
      {"LPUSH", "k", "x"},
      WRITE(B, LONG, LONG),
      {"DEL", "k"},
      {"SET", "k", A},
      WRITE(B, LONG, LONG),
      NOTE}},
    {"write: when the readers have gone, the note is not needed",
     {SHARE(A, LONG),
      WRITE(B, LONG, LONG),
      SHARE_END(A),
      WRITE(B, LONGER, LONG),
      {"GET", "k"},
      {"PTTL", "k"},
      NOTE}},
    {"write: a list that was left behind is none",
     {SHARE(A, LONG), {"DEL", "k"}, WRITE(B, LONG, LONG), READERS}},
    {"write: many at once",
     {SHARE(A, LONG),
      {"EVAL", WRITE_TEXT, "6", "l", "l::readers", "l::writer", "k", "k::readers", "k::writer", A,
       LONG, "0", B, LONG, LONGER},
      {"GET", "l"},
      NOTE}},
    {"write: the script is remembered",
     {{"EVALSHA", WRITE_SHA, "3", "k", "k::readers", "k::writer", A, LONG, "0"},
      WRITE(A, LONG, "0"),
      {"EVALSHA", WRITE_SHA, "3", "k", "k::readers", "k::writer", A, LONG, "0"}}},
    {"write, fenced: a free key, and its counter",
     {WRITE_FENCED(A, LONG, LONG, "5", LONGER),
      {"PTTL", "k"},
      COUNTER,
      {"PTTL", "k::fence"},
      {"DEL", "k"},
      WRITE_FENCED(B, LONG, LONG, "5", "0"),
      {"PTTL", "k::fence"}}},
    {"write, fenced: readers are asked to make room",
     {SHARE(A, LONG), WRITE_FENCED(B, LONG, LONG, "5", "0"), NOTE, COUNTER}},
    {"write, fenced: a counter that is none",
     {{"SET", "k::fence", "seven"}, WRITE_FENCED(A, LONG, LONG, "5", "0"), {"GET", "k"}}},
    {"write, fenced: many at once",
     {{"EVAL",
       WRITE_FENCED_TEXT,
       "8",
       "k",
       "k::readers",
       "k::writer",
       "k::fence",
       "l",
       "l::readers",
       "l::writer",
       "l::fence",
       A,
       LONG,
       "0",
       "5",
       "0",
       B,
       LONG,
       "0",
       "6",
       "0"},
      COUNTER,
      {"GET", "l::fence"},
      {"GET", "l"}}},
    {"sorted sets",
     {{"ZADD", "s", "5", "a"},
      {"ZADD", "s", "7", "b"},
      {"ZADD", "s", "6", "a"},
      {"ZSCORE", "s", "a"},
      {"ZSCORE", "s", "c"},
      {"ZCOUNT", "s", "7", "+inf"},
      {"ZREMRANGEBYSCORE", "s", "-inf", "6"},
      {"ZREM", "s", "a"},
      {"ZREM", "s", "b"},
      {"PTTL", "s"}}},
    {"sorted sets that are none",
     {{"SET", "s", "x"},
      {"ZADD", "s", "5", "a"},
      {"ZSCORE", "s", "a"},
      {"ZREM", "s", "a"},
      {"ZREMRANGEBYSCORE", "s", "-inf", "6"},
      {"ZCOUNT", "s", "7", "+inf"},
      {"DEL", "s"},
      {"ZSCORE", "s", "a"},
      {"ZREM", "s", "a"},
      {"ZCOUNT", "s", "7", "+inf"}}},
    {"pexpireat",
     {{"SET", "k", A},
      {"PEXPIREAT", "k", "1"},
      {"GET", "k"},
      {"PEXPIREAT", "k", "1"},
      {"SET", "k", A},
      {"PEXPIREAT", "k", "x"},
      {"SET", "l", A},
      {"DEL", "k", "none", "l"}}},
    {"beat: the marker is made", {BEAT("0"), {"PTTL", MARKER}}},
    {"beat: the marker grows old, and is confirmed once a second", {BEAT("0"), WAIT, BEAT("0")}},
    {"beat: a marker that was emptied is new", {BEAT("0"), WAIT, {"DEL", MARKER}, BEAT("0")}},
    {"beat: a marker from before is new",
     {BEAT("0"), WAIT, BEAT("9007199254740991"), BEAT("9007199254740991")}},
    {"beat: a marker of the future is new",
     {{"SET", MARKER, "9007199254740991:9007199254740991"}, BEAT("0"), WAIT, BEAT("0")}},
    {"beat: what is no marker is replaced", {{"SET", MARKER, "1:"}, BEAT("0"), WAIT, BEAT("0")}},
    {"beat: a list is not", {{"LPUSH", MARKER, "x"}, BEAT("0")}},
    {"beat: the script is remembered",
     {{"EVALSHA", BEAT_SHA, "1", MARKER, "0"},
      BEAT("0"),
      WAIT,
      {"EVALSHA", BEAT_SHA, "1", MARKER, "0"}}},
    {"a free key is set", {{"SET", "k", A, "NX", "PX", LONG}, {"GET", "k"}, {"PTTL", "k"}}},
    {"a key that is held is not set",
     {{"SET", "k", A, "NX", "PX", LONG},
      {"SET", "k", B, "NX", "PX", LONGER},
      {"GET", "k"},
      {"PTTL", "k"}}},
    {"not even for its holder",
     {{"SET", "k", A, "NX", "PX", LONG}, {"SET", "k", A, "NX", "PX", LONG}, {"PTTL", "k"}}},
    {"an expired key is free",
     {{"SET", "k", A, "NX", "PX", "1"},
      {EXPIRE, "k"},
      {"GET", "k"},
      {"PTTL", "k"},
      {"SET", "k", B, "NX", "PX", LONG},
      {"GET", "k"}}},
    {"a list is not set over", {{"LPUSH", "k", "x"}, {"SET", "k", A, "NX", "PX", LONG}}},
    {"a TTL of nothing is refused", {{"SET", "k", A, "NX", "PX", "0"}, {"GET", "k"}}},
    {"a TTL below nothing is refused", {{"SET", "k", A, "NX", "PX", "-1"}, {"GET", "k"}}},
    {"a TTL that is no number is refused", {{"SET", "k", A, "NX", "PX", "1x"}, {"GET", "k"}}},
    {"scripts are loaded, and forgotten",
     {{"EVALSHA", RELEASE_SHA, "1", "k", A},
      {"SCRIPT", "LOAD", RELEASE_TEXT},
      {"EVALSHA", RELEASE_SHA, "1", "k", A},
      {"EVALSHA", RENEW_SHA, "1", "k", A, LONG},
      {"SCRIPT", "FLUSH"},
      {"EVALSHA", RELEASE_SHA, "1", "k", A}}},
    {"EVAL loads the script too",
     {{"SCRIPT", "FLUSH"},
      {"EVAL", RELEASE_TEXT, "1", "k", A},
      {"EVALSHA", RELEASE_SHA, "1", "k", A},
      {"EVAL", RENEW_TEXT, "1", "k", A, LONG},
      {"EVALSHA", RENEW_SHA, "1", "k", A, LONG}}},
    {"release: ours is deleted",
     {{"SET", "k", A, "NX", "PX", LONG}, {"EVAL", RELEASE_TEXT, "1", "k", A}, {"GET", "k"}}},
    {"release: another's stays",
     {{"SET", "k", B, "NX", "PX", LONG},
      {"EVAL", RELEASE_TEXT, "1", "k", A},
      {"GET", "k"},
      {"PTTL", "k"}}},
    {"release: missing", {{"EVAL", RELEASE_TEXT, "1", "k", A}, {"GET", "k"}}},
    {"release: expired",
     {{"SET", "k", A, "NX", "PX", "1"}, {EXPIRE, "k"}, {"EVAL", RELEASE_TEXT, "1", "k", A}}},
    {"release: without expiry",
     {{"SET", "k", B}, {"EVAL", RELEASE_TEXT, "1", "k", A}, {"GET", "k"}, {"PTTL", "k"}}},
    {"release: ours without expiry",
     {{"SET", "k", A}, {"EVAL", RELEASE_TEXT, "1", "k", A}, {"GET", "k"}}},
    {"release: a list", {{"LPUSH", "k", "x"}, {"EVAL", RELEASE_TEXT, "1", "k", A}, {"GET", "k"}}},
    {"release: twice",
     {{"SET", "k", A, "NX", "PX", LONG},
      {"EVAL", RELEASE_TEXT, "1", "k", A},
      {"EVAL", RELEASE_TEXT, "1", "k", A}}},
    {"release: many, each its own answer",
     {{"SET", "k1", A, "NX", "PX", LONG},
      {"SET", "k2", B, "NX", "PX", LONG},
      {"LPUSH", "k4", "x"},
      {"EVAL", RELEASE_TEXT, "3", "k1", "k2", "k3", A, A, A},
      {"EVAL", RELEASE_TEXT, "2", "k4", "k2", A, B},
      {"GET", "k1"},
      {"GET", "k2"}}},
    {"renew: ours is extended",
     {{"SET", "k", A, "NX", "PX", LONG},
      {"EVAL", RENEW_TEXT, "1", "k", A, LONGER},
      {"PTTL", "k"},
      {"GET", "k"}}},
    {"renew: never shortened",
     {{"SET", "k", A, "NX", "PX", LONGER}, {"EVAL", RENEW_TEXT, "1", "k", A, LONG}, {"PTTL", "k"}}},
    {"renew: another's stays as it is",
     {{"SET", "k", B, "NX", "PX", LONG},
      {"EVAL", RENEW_TEXT, "1", "k", A, LONGER},
      {"PTTL", "k"},
      {"GET", "k"}}},
    {"renew: missing is not made", {{"EVAL", RENEW_TEXT, "1", "k", A, LONG}, {"GET", "k"}}},
    {"renew: expired is not made",
     {{"SET", "k", A, "NX", "PX", "1"},
      {EXPIRE, "k"},
      {"EVAL", RENEW_TEXT, "1", "k", A, LONG},
      {"GET", "k"}}},
    {"renew: ours without expiry gets one",
     {{"SET", "k", A}, {"EVAL", RENEW_TEXT, "1", "k", A, LONG}, {"PTTL", "k"}}},
    {"renew: another's without expiry",
     {{"SET", "k", B}, {"EVAL", RENEW_TEXT, "1", "k", A, LONG}, {"PTTL", "k"}}},
    {"renew: a list", {{"LPUSH", "k", "x"}, {"EVAL", RENEW_TEXT, "1", "k", A, LONG}}},
    {"renew: many, each its own answer",
     {{"SET", "k1", A, "NX", "PX", LONG},
      {"SET", "k2", B, "NX", "PX", LONG},
      {"EVAL", RENEW_TEXT, "2", "k1", "k2", A, LONGER, A, LONGER},
      {"PTTL", "k1"},
      {"PTTL", "k2"}}},
    {"numbers of keys that are none",
     {{"EVAL", RELEASE_TEXT, "x", "k", A},
      {"EVAL", RELEASE_TEXT, "9", "k", A},
      {"EVAL", RELEASE_TEXT, "-1", "k", A}}},
    {"pexpire", {{"SET", "k", A}, {"PEXPIRE", "k", LONG}, {"PTTL", "k"}, {"PEXPIRE", "none", "1"}}},
    {"pexpire of nothing deletes", {{"SET", "k", A}, {"PEXPIRE", "k", "0"}, {"GET", "k"}}},
    {"del", {{"SET", "k", A}, {"DEL", "k"}, {"DEL", "k"}, {"PTTL", "k"}}},
    {"get of a list", {{"LPUSH", "k", "x"}, {"GET", "k"}}},
    {"probe: nobody listens",
     {{"SCRIPT", "FLUSH"},
      {"EVALSHA", PROBE_SHA, "0", "redlock:1", "hello"},
      {"EVAL", PROBE_TEXT, "0", "redlock:1", "hello"},
      {"EVALSHA", PROBE_SHA, "0", "redlock:1", "hello"},
      {"PUBLISH", "redlock:1", "hello"}}},
    {"what a handshake says", {{"PING"}, {"SELECT", "0"}, {"CLIENT", "SETNAME", "me"}}},
};

/* ---- one step ---- */

static const char *text_of(const char *word) {
    static const struct {
        const char *mark;
        const char *(*text)(enum script script);
        enum script script;
    } marks[] = {{RELEASE_TEXT, script_text, SCRIPT_RELEASE},
                 {RELEASE_SHA, script_sha, SCRIPT_RELEASE},
                 {RENEW_TEXT, script_text, SCRIPT_RENEW},
                 {RENEW_SHA, script_sha, SCRIPT_RENEW},
                 {STAY_TEXT, script_text, SCRIPT_STAY},
                 {STAY_SHA, script_sha, SCRIPT_STAY},
                 {TAKE_TEXT, script_text, SCRIPT_TAKE},
                 {TAKE_SHA, script_sha, SCRIPT_TAKE},
                 {KEEP_TEXT, script_text, SCRIPT_KEEP},
                 {KEEP_SHA, script_sha, SCRIPT_KEEP},
                 {PERMIT_TEXT, script_text, SCRIPT_PERMIT},
                 {PERMIT_SHA, script_sha, SCRIPT_PERMIT},
                 {SHARE_TEXT, script_text, SCRIPT_SHARE},
                 {SHARE_SHA, script_sha, SCRIPT_SHARE},
                 {SHARE_KEEP_TEXT, script_text, SCRIPT_SHARE_KEEP},
                 {SHARE_KEEP_SHA, script_sha, SCRIPT_SHARE_KEEP},
                 {SHARE_END_TEXT, script_text, SCRIPT_SHARE_END},
                 {SHARE_END_SHA, script_sha, SCRIPT_SHARE_END},
                 {WRITE_TEXT, script_text, SCRIPT_WRITE},
                 {WRITE_SHA, script_sha, SCRIPT_WRITE},
                 {WRITE_FENCED_TEXT, script_text, SCRIPT_WRITE_FENCED},
                 {WRITE_FENCED_SHA, script_sha, SCRIPT_WRITE_FENCED},
                 {BEAT_TEXT, script_text, SCRIPT_BEAT},
                 {BEAT_SHA, script_sha, SCRIPT_BEAT},
                 {PROBE_TEXT, script_text, SCRIPT_PROBE},
                 {PROBE_SHA, script_sha, SCRIPT_PROBE}};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (strcmp(word, marks[i].mark) == 0) {
            return marks[i].text(marks[i].script);
        }
    }
    return word;
}

static unsigned count_words(const char *const *step) {
    unsigned count = 0;
    while (count < WORDS_OF_STEP_MAX && step[count] != NULL) {
        count++;
    }
    return count;
}

static struct reply ask_simulated(struct master *master, const char *const *step) {
    struct words words = {.count = count_words(step)};
    for (unsigned i = 0; i < words.count; i++) {
        words.word[i].text = text_of(step[i]);
        words.word[i].length = strlen(words.word[i].text);
    }
    master->store.commands++;
    return master_run(master, &words);
}

static redisReply *ask_real(redisContext *real, const char *const *step) {
    const char *words[WORDS_OF_STEP_MAX];
    unsigned count = count_words(step);
    for (unsigned i = 0; i < count; i++) {
        words[i] = text_of(step[i]);
    }
    redisReply *reply = redisCommandArgv(real, (int)count, words, NULL);
    if (reply == NULL) {
        fprintf(stderr, "the real server does not answer: %s\n", real->errstr);
        exit(1);
    }
    return reply;
}

static void wait_until_expired(struct world *world, redisContext *real, const char *key) {
    bool is_there = true;
    world->now += 10 * MS;
    while (is_there) {
        redisReply *reply = redisCommand(real, "EXISTS %s", key);
        is_there = reply != NULL && reply->integer != 0;
        freeReplyObject(reply);
    }
}

/* ---- comparing ---- */

/*
 * Returns whether the numbers, of milliseconds, differ by no more than the real server's working
 * time.
 */
static bool is_about(long long simulated, long long real) {
    return simulated == real ||
           (simulated > SLACK_MS && real <= simulated && real > simulated - SLACK_MS);
}

static bool texts_match(const char *simulated, const char *real) {
    while (*simulated != '\0' && *real != '\0') {
        if (*simulated >= '0' && *simulated <= '9' && *real >= '0' && *real <= '9') {
            char *simulated_end, *real_end;
            if (!is_about(strtoll(simulated, &simulated_end, 10), strtoll(real, &real_end, 10))) {
                return false;
            }
            simulated = simulated_end;
            real = real_end;
        } else if (*simulated++ != *real++) {
            return false;
        }
    }
    return *simulated == *real;
}

/* Compares the first words of two errors: the rest differs between versions. */
static bool errors_match(const char *simulated, const char *real) {
    size_t length = strcspn(simulated, " ");
    return length == strcspn(real, " ") && memcmp(simulated, real, length) == 0;
}

static bool matches(const struct reply *simulated, const redisReply *real) {
    switch (simulated->type) {
    case REPLY_STATUS:
        return real->type == REDIS_REPLY_STATUS && strcmp(simulated->text, real->str) == 0;
    case REPLY_ERROR:
        return real->type == REDIS_REPLY_ERROR && errors_match(simulated->text, real->str);
    case REPLY_INTEGER:
        return real->type == REDIS_REPLY_INTEGER && is_about(simulated->integer, real->integer);
    case REPLY_NIL:
        return real->type == REDIS_REPLY_NIL;
    case REPLY_STRING: {
        char text[STORE_TEXT_MAX + 1];
        memcpy(text, simulated->text, simulated->length);
        text[simulated->length] = '\0';
        return real->type == REDIS_REPLY_STRING && texts_match(text, real->str);
    }
    }
    return false;
}

/*
 * Compares two beats. Clocks differ, but both markers must be new or not, and just confirmed or
 * not.
 */
static bool beats_match(const struct reply *simulated, const redisReply *real) {
    struct reply other = {.type = REPLY_STRING, .text = real->str, .length = real->len};
    struct reply_beat a, b;
    return real->type == REDIS_REPLY_STRING && reply_to_beat(simulated, &a) &&
           reply_to_beat(&other, &b) && (a.age_us == 0) == (b.age_us == 0) &&
           (a.last_us == a.time_us) == (b.last_us == b.time_us);
}

static bool is_beat(const char *const *step) {
    return step[1] != NULL && (strcmp(step[1], BEAT_TEXT) == 0 || strcmp(step[1], BEAT_SHA) == 0);
}

static void complain(const struct test_case *test, unsigned step, const struct reply *simulated,
                     const redisReply *real) {
    printf("# %s, step %u (%s): the simulated master says %d %.*s (%lld), the real one %d %s "
           "(%lld)\n",
           test->name, step + 1, test->steps[step][0], (int)simulated->type, (int)simulated->length,
           simulated->text != NULL ? simulated->text : "", (long long)simulated->integer,
           real->type, real->str != NULL ? real->str : "", real->integer);
}

static bool run_case(const struct test_case *test, redisContext *real) {
    static struct world world;
    struct master master;
    bool good = true;
    world_init(&world, 1, NULL);
    master_init(&master, &world, 0);
    freeReplyObject(redisCommand(real, "FLUSHALL"));
    freeReplyObject(redisCommand(real, "SCRIPT FLUSH"));
    for (unsigned i = 0; i < STEPS_MAX && test->steps[i][0] != NULL; i++) {
        if (strcmp(test->steps[i][0], EXPIRE) == 0) {
            wait_until_expired(&world, real, test->steps[i][1]);
            continue;
        }
        struct reply simulated = ask_simulated(&master, test->steps[i]);
        redisReply *reply = ask_real(real, test->steps[i]);
        bool is_good = is_beat(test->steps[i]) && simulated.type == REPLY_STRING
                           ? beats_match(&simulated, reply)
                           : matches(&simulated, reply);
        if (!is_good) {
            complain(test, i, &simulated, reply);
            good = false;
        }
        freeReplyObject(reply);
    }
    master_finish(&master);
    world_finish(&world);
    return good;
}

int main(void) {
    const unsigned count = sizeof(cases) / sizeof(cases[0]);
    bool good = true;
    struct masters *masters = masters_start(1, NULL);
    redisContext *real = redisConnect("127.0.0.1", masters_port(masters, 0));
    if (real == NULL || real->err != 0) {
        fprintf(stderr, "the real server cannot be reached\n");
        return 1;
    }
    printf("1..%u\n", count);
    for (unsigned i = 0; i < count; i++) {
        bool passed = run_case(&cases[i], real);
        printf("%sok %u - %s\n", passed ? "" : "not ", i + 1, cases[i].name);
        good = good && passed;
    }
    redisFree(real);
    masters_finish(masters);
    return good ? 0 : 1;
}
