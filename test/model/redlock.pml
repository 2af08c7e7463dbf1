/*
 * Redlock as libredlock implements it: clients, three nodes, and the wires between them.
 *
 * There is one process, and each of its steps is atomic: a client acts, a node executes one
 * command, a fault happens, or one tick of time passes. Time is relative (the rest of a TTL, of a
 * validity), and a token is reused when nothing in the world remembers it. So ticks, tries and
 * faults are not counted, and the search covers any number of them.
 *
 * A reply needs no message: the vote is recorded when the node executes, and the client reads the
 * votes at any time, or never, which models a late or a lost reply.
 *
 * README.md explains each switch (-D), what is bounded, and what is left out.
 */

/* ---- the bounds, and the terms of the lock ---- */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef TTL
#define TTL 3 /* ticks for which a node keeps a key */
#endif
#ifndef TOKENS
#define TOKENS 1 /* tokens of one client that may be remembered at the same time */
#endif
#ifndef QUEUE
#define QUEUE 2 /* commands in flight on one wire */
#endif

#define NODES 3
#define NOBODY CLIENTS

#ifdef MUTANT_QUORUM_OF_ONE
#define QUORUM 1
#else
#define QUORUM 2
#endif

#ifdef MUTANT_NO_DRIFT
#define DRIFT 0
#else
/* ticks by which a node may be too early; the validity is shorter by the same amount */
#define DRIFT 1
#endif

#define VALIDITY (TTL - DRIFT)

/* ---- what a command is: a byte, 0 is none ---- */

#define SET 1     /* SET key token NX PX ttl */
#define RENEW 2   /* compare and pexpire; for a try, it raises counters too (FENCED) */
#define RELEASE 3 /* compare and delete */

#define FRESH 32 /* its round still reads votes */

#define command(kind, ttl, token_index) ((kind) + ((ttl) << 2) + ((token_index) << 6))
#define kind_of(m) ((m)&3)
#define ttl_of(m) (((m) >> 2) & 7)
#define is_fresh(m) (((m)&FRESH) != 0)
#define token_of(c, m) (1 + (c)*TOKENS + ((m) >> 6))

/* ---- the state ---- */

/* Of a node. */
byte token[NODES]; /* the key's value; 0: there is no key */
byte life[NODES];  /* ticks until it expires */
byte out[NODES];   /* ticks for which a node that forgot still stays out */

/* Of a client: one request for the only key, or the resulting lock. */
#define IDLE 0
#define TRYING 1
#define HELD 2
#define RENEWING 3
#define LOST 4
#define RAISING 5

byte state[CLIENTS];
byte mine[CLIENTS];  /* its token; 0 when idle */
byte worth[CLIENTS]; /* ticks of validity that the round would give if it were decided now */
byte left[CLIENTS];  /* ticks of validity left, by its own clock */
bit uses[CLIENTS];   /* the application does what only the holder may do */

/* A node's vote on the client's round, whether or not the client has seen it. */
#define NONE 0
#define GRANTED 1
#define DENIED 2
#define MISSING 3

byte votes[CLIENTS * NODES];
#define vote(c, n) votes[(c)*NODES + (n)]

/* The commands in flight, the oldest first: a connection keeps them in order. */
byte wires[CLIENTS * NODES * QUEUE];
#define wire(c, n, i) wires[((c)*NODES + (n)) * QUEUE + (i)]

/* A command of a broken connection, which the server may still read. */
#ifdef STRANDING
byte stranded;
byte stranded_client;
byte stranded_node;
#endif

/* Scratch, within one step. */
byte i;
byte j;
byte k;
byte m;
byte t;
byte v;

/* The properties; they are variables so that a violation is reported under their names. */
bool exclusive = true;
bool kept = true;
bool cleaned = true;
bool not_revived = true;
bool unseen = true;

#define count(c, what)                                                                            \
    ((vote(c, 0) == (what)) + (vote(c, 1) == (what)) + (vote(c, 2) == (what)))
#define yes(c) (count(c, GRANTED) >= QUORUM)
#define gone(c) (count(c, DENIED) + count(c, MISSING) > NODES - QUORUM)

/* ---- what is checked after every step ---- */

#define holds(c) (left[c] > 0 || uses[c])

#if CLIENTS == 2
#define EXCLUSIVE (!(holds(0) && holds(1)))
#else
#define EXCLUSIVE                                                                                 \
    (!(holds(0) && holds(1)) && !(holds(0) && holds(2)) && !(holds(1) && holds(2)))
#endif

/*
 * A validity that is not over relies on a quorum of nodes that keep the key at least as long; a
 * node that forgot it, and stays out at least as long, counts too.
 */
#define keeps(c, n) ((token[n] == mine[c] && life[n] >= left[c]) || out[n] >= left[c])
#define KEPT(c) (left[c] == 0 || keeps(c, 0) + keeps(c, 1) + keeps(c, 2) >= 2)

inline check_kept() {
    kept = KEPT(0) && KEPT(1);
#if CLIENTS == 3
    kept = kept && KEPT(2);
#endif
    assert(kept)
}

/* If the owner of a key is done with it, a release to the node is in flight. */
inline check_cleaned() {
    cleaned = true;
    i = 0;
    do
    :: i < NODES ->
        if
        :: token[i] != 0 ->
            k = (token[i] - 1) / TOKENS;
            if
            :: mine[k] != token[i] ->
                cleaned = false;
                j = 0;
                do
                :: j < QUEUE ->
                    if
                    :: kind_of(wire(k, i, j)) == RELEASE &&
                       token_of(k, wire(k, i, j)) == token[i] ->
                        cleaned = true;
                        break
                    :: else -> j++
                    fi
                :: else -> break
                od
            :: else
            fi
        :: else
        fi;
        if
        :: !cleaned -> break
        :: else -> i++
        fi
    :: else -> break
    od;
    assert(cleaned)
}

/* Each of these must be reachable, or the properties might hold only because nothing happens. */
#define HOLDER_1 (left[0] > 0)
#define HOLDER_2 (left[1] > 0)
#define HOLDER_3 (left[CLIENTS - 1] > 0)
#define SPLIT_IN_2 (owns(0, 0) && owns(1, 1) && state[0] == TRYING && state[1] == TRYING)
#define SPLIT_IN_3 (SPLIT_IN_2 && owns(CLIENTS - 1, 2) && state[CLIENTS - 1] == TRYING)
#define LATE_SET (token[0] != 0 && token[0] <= TOKENS && token[0] != mine[0])
#define TWO_TRIES (LATE_SET && state[0] == TRYING && owns(0, 1))
#define EXPIRED (state[0] == HELD && left[0] == 0 && !owns(0, 0) && !owns(0, 1) && !owns(0, 2))
#define NEXT_HOLDER (state[0] == HELD && left[0] == 0 && left[1] > 0)
#define EXTENDED (state[0] == HELD && left[0] > 0 && count(0, GRANTED) == NODES)
#define RAISED (state[1] == RAISING && yes(1) && worth[1] > 0)
#define TOP_UP (kind_of(wire(0, 0, 0)) == SET && ttl_of(wire(0, 0, 0)) < TTL)
#define LOSS_REPORTED (state[0] == RENEWING && left[0] > 0 && gone(0))
#define OUT_WHILE_HELD (out[0] > 0 && left[0] > 0)
#define OUT_TWICE (out[0] > 0 && out[1] > 0 && left[0] > 0)
#define owns(c, n) (mine[c] != 0 && token[n] == mine[c])

inline check() {
    tidy_all(0);
    tidy_all(1);
#if CLIENTS == 3
    tidy_all(2);
#endif
#ifdef PROBE
    unseen = !(PROBE);
    assert(unseen);
#else
    exclusive = EXCLUSIVE;
    assert(exclusive);
#ifndef ONLY_EXCLUSIVE
    check_kept();
#ifndef NOT_CLEANED
    check_cleaned();
#endif
#endif
#endif
    print_world();
    put_all_in_order();
    i = 0;
    j = 0;
    k = 0;
    m = 0;
    t = 0;
    v = 0
}

/* Prints the world after each step of a trace; costs the search nothing. */
inline print_world() {
    printf("    A %d (%d)%c  B %d (%d)%c  C %d (%d)%c", token[0], life[0],
           (out[0] > 0 -> '!' : ' '), token[1], life[1], (out[1] > 0 -> '!' : ' '), token[2],
           life[2], (out[2] > 0 -> '!' : ' '));
    printf(" | client 1: %d%c", left[0], (uses[0] -> '*' : ' '));
    printf(" | client 2: %d%c", left[1], (uses[1] -> '*' : ' '));
#if CLIENTS == 3
    printf(" | client 3: %d%c", left[2], (uses[2] -> '*' : ' '));
#endif
    printf("\n")
}

/* ---- the wires ---- */

/*
 * Sends a command, unless the wire is full: then it is not sent. Releases have one slot more than
 * the others, so that what was sent can always be released.
 */
inline send(c, n, what, places) {
    i = 0;
    do
    :: i < places && wire(c, n, i) != 0 -> i++
    :: else -> break
    od;
    if
    :: i < places -> wire(c, n, i) = what
    :: else
    fi
}

inline send_all(c, what, places) {
    send(c, 0, what, places);
    send(c, 1, what, places);
    send(c, 2, what, places)
}

inline take_first(c, n) {
    m = wire(c, n, 0);
    i = 1;
    do
    :: i < QUEUE ->
        wire(c, n, i - 1) = wire(c, n, i);
        i++
    :: else -> break
    od;
    wire(c, n, QUEUE - 1) = 0
}

/*
 * The connection breaks before the node has read its first command, or the node refuses it with an
 * error. A release is then pending: it is sent again, after the commands in flight by then.
 */
inline lose_first(c, n) {
    take_first(c, n);
    if
    :: kind_of(m) == RELEASE -> send(c, n, m, QUEUE)
    :: else
    fi;
    printf("a command of client %d to node %c is lost\n", c + 1, 'A' + n)
}

/* All connections to a node break; only pending releases are left. */
inline lose_all(c, n) {
    i = 0;
    j = 0;
    do
    :: i < QUEUE ->
        m = wire(c, n, i);
        wire(c, n, i) = 0;
        if
        :: kind_of(m) == RELEASE ->
            wire(c, n, j) = m;
            j++
        :: else
        fi;
        i++
    :: else -> break
    od
}

#ifdef STRANDING
/* The connection breaks, but the server reads what was sent at some later time. */
inline strand_first(c, n) {
    take_first(c, n);
    stranded = (is_fresh(m) -> m - FRESH : m);
    stranded_client = c;
    stranded_node = n;
    printf("a command of client %d to node %c is left on a broken connection\n", c + 1, 'A' + n)
}

inline land_stranded(early) {
    m = stranded;
    k = stranded_client;
    j = stranded_node;
    stranded = 0;
    stranded_client = 0;
    stranded_node = 0;
    execute(k, j, early)
}
#endif

/* The votes of the client's round are no longer read. */
inline close_round(c) {
    worth[c] = 0;
    vote(c, 0) = NONE;
    vote(c, 1) = NONE;
    vote(c, 2) = NONE;
    i = 0;
    do
    :: i < NODES * QUEUE ->
        m = wires[(c)*NODES * QUEUE + i];
        if
#ifndef MUTANT_OLD_ANSWERS_COUNT
        :: is_fresh(m) -> wires[(c)*NODES * QUEUE + i] = m - FRESH
#endif
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* ---- a node ---- */

/* Executes one command, m; `early`: its clock is fast by the full drift. */
inline execute(c, n, early) {
    t = token_of(c, m);
    v = (token[n] == 0 -> MISSING : DENIED);
    if
#ifdef MUTANT_SET_WITHOUT_NX
    :: kind_of(m) == SET ->
#else
    :: kind_of(m) == SET && token[n] == 0 ->
#endif
        v = GRANTED;
        life[n] = ttl_of(m) - early;
        token[n] = (life[n] > 0 -> t : 0)
    :: kind_of(m) == RENEW && token[n] == t ->
        v = GRANTED;
        life[n] = (life[n] > ttl_of(m) - early -> life[n] : ttl_of(m) - early)
#ifdef MUTANT_RENEWAL_COUNTS_MISSING
    :: kind_of(m) == RENEW && token[n] == 0 -> v = GRANTED
#endif
#ifdef MUTANT_RELEASE_WITHOUT_TOKEN
    :: kind_of(m) == RELEASE ->
#else
    :: kind_of(m) == RELEASE && token[n] == t ->
#endif
        v = GRANTED;
        token[n] = 0;
        life[n] = 0
    :: else
    fi;
    if
    :: is_fresh(m) -> vote(c, n) = v
    :: else
    fi;
    say_executed(c, n, early)
}

inline say_executed(c, n, early) {
    printf("node %c executes ", 'A' + n);
    if
    :: kind_of(m) == SET -> printf("SET NX, token %d, TTL %d", t, ttl_of(m))
    :: kind_of(m) == RENEW -> printf("the renewal of token %d", t)
    :: else -> printf("the release of token %d", t)
    fi;
    if
    :: v == GRANTED -> printf(": done")
    :: v == DENIED -> printf(": no, it has token %d", token[n])
    :: else -> printf(": no, it has no key")
    fi;
    if
    :: early == 1 -> printf("; by its fast clock\n")
    :: else -> printf("\n")
    fi
}

inline forget(n) {
    token[n] = 0;
    life[n] = 0
}

/* All connections of a restarting node are lost. */
inline disconnect(n) {
    lose_all(0, n);
    lose_all(1, n)
#if CLIENTS == 3
    ;
    lose_all(2, n)
#endif
}

/*
 * Removes commands from the wire that have no effect any more, and whose answer is not awaited: a
 * release or a renewal of a token that the node does not have and that no SET before it can bring.
 * Otherwise the worlds that differ only in such commands would be searched one by one. v: a mask of
 * the client's tokens that the node may have when it reads the next command.
 */
#if defined(MUTANT_SAME_TOKEN) || defined(MUTANT_RELEASE_WITHOUT_TOKEN)
inline tidy(c, n) {
    skip
}
#else
inline tidy(c, n) {
    v = (token[n] != 0 && (token[n] - 1) / TOKENS == c -> 1 << ((token[n] - 1) % TOKENS) : 0);
#ifdef STRANDING
    v = (kind_of(stranded) == SET && stranded_client == c && stranded_node == n ->
         v | 1 << (stranded >> 6) : v);
#endif
    i = 0;
    j = 0;
    do
    :: i < QUEUE && wire(c, n, i) != 0 ->
        m = wire(c, n, i);
        wire(c, n, i) = 0;
        t = 1 << (m >> 6);
        if
        :: kind_of(m) == SET || is_fresh(m) || (v & t) ->
            wire(c, n, j) = m;
            j++
        :: else
        fi;
        v = (kind_of(m) == SET -> v | t : v);
        i++
    :: else -> break
    od
}
#endif

inline tidy_all(c) {
    tidy(c, 0);
    tidy(c, 1);
    tidy(c, 2)
}

/*
 * The nodes are alike, and so are the clients, and no property names one of them: worlds that
 * differ only by a permutation are searched as one, in which the clients and then the nodes are in
 * ascending order. Equal ones stay as they are, which finds fewer duplicates than there are, and
 * never a false one.
 */
#if defined(NAMED) || defined(STRANDING)
inline put_all_in_order() {
    skip
}
#else
#define swap(x, y)                                                                                \
    v = x;                                                                                        \
    x = y;                                                                                        \
    y = v

/* t: 0 while equal, 1 when node a comes before node b, 2 when after it. */
#define compare(x, y) t = (t > 0 -> t : (x < y -> 1 : (x > y -> 2 : 0)))

inline compare_client(c, a, b) {
    compare(vote(c, a), vote(c, b));
    i = 0;
    do
    :: i < QUEUE && t == 0 ->
        compare(wire(c, a, i), wire(c, b, i));
        i++
    :: else -> break
    od
}

inline swap_client(c, a, b) {
    swap(vote(c, a), vote(c, b));
    i = 0;
    do
    :: i < QUEUE ->
        swap(wire(c, a, i), wire(c, b, i));
        i++
    :: else -> break
    od
}

inline put_nodes_in_order(a, b) {
    t = 0;
    compare(token[a], token[b]);
    compare(life[a], life[b]);
    compare(out[a], out[b]);
    compare_client(0, a, b);
    compare_client(1, a, b);
#if CLIENTS == 3
    compare_client(2, a, b);
#endif
    if
    :: t == 2 ->
        swap(token[a], token[b]);
        swap(life[a], life[b]);
        swap(out[a], out[b]);
        swap_client(0, a, b);
        swap_client(1, a, b)
#if CLIENTS == 3
        ;
        swap_client(2, a, b)
#endif
    :: else
    fi
}

#define index_mine(c) (mine[c] == 0 -> 0 : mine[c] - (c)*TOKENS)

inline rename_tokens(n, a, b) {
    k = (token[n] == 0 -> NOBODY : (token[n] - 1) / TOKENS);
    token[n] = (k == a -> token[n] + ((b) - (a)) * TOKENS :
                (k == b -> token[n] - ((b) - (a)) * TOKENS : token[n]))
}

/* Client a comes before client b in the arrays; their tokens are renamed with them. */
inline put_clients_in_order(a, b) {
    t = 0;
    compare(state[a], state[b]);
    compare(left[a], left[b]);
    compare(worth[a], worth[b]);
    if
    :: t == 2 ->
        i = index_mine(a);
        mine[a] = (mine[b] == 0 -> 0 : mine[b] - ((b) - (a)) * TOKENS);
        mine[b] = (i == 0 -> 0 : i + (b)*TOKENS);
        swap(state[a], state[b]);
        swap(left[a], left[b]);
        swap(worth[a], worth[b]);
        swap(uses[a], uses[b]);
        i = 0;
        do
        :: i < NODES * QUEUE ->
            swap(wires[(a)*NODES * QUEUE + i], wires[(b)*NODES * QUEUE + i]);
            i++
        :: else -> break
        od;
        swap(vote(a, 0), vote(b, 0));
        swap(vote(a, 1), vote(b, 1));
        swap(vote(a, 2), vote(b, 2));
        rename_tokens(0, a, b);
        rename_tokens(1, a, b);
        rename_tokens(2, a, b)
    :: else
    fi
}

inline put_all_in_order() {
    put_clients_in_order(0, 1);
#if CLIENTS == 3
    put_clients_in_order(1, 2);
    put_clients_in_order(0, 1);
#endif
    put_nodes_in_order(0, 1);
    put_nodes_in_order(1, 2);
    put_nodes_in_order(0, 1)
}
#endif

/* ---- a client ---- */

#define index_of(c) (mine[c] - 1 - (c)*TOKENS)

#define remembers(c, t, i) (wires[(c)*NODES * QUEUE + (i)] != 0 && \
                            token_of(c, wires[(c)*NODES * QUEUE + (i)]) == (t))

/*
 * Draws a fresh token: one that no node has and that no command names; t is 0 when there is none.
 */
inline draw_token(c) {
    k = 0;
    do
    :: k < TOKENS ->
        t = 1 + (c)*TOKENS + k;
        v = (token[0] == t || token[1] == t || token[2] == t);
#ifdef STRANDING
        v = v || (stranded != 0 && stranded_client == c && (stranded >> 6) == k);
#endif
        i = 0;
        do
        :: i < NODES * QUEUE ->
            v = v || remembers(c, t, i);
            i++
        :: else -> break
        od;
        if
        :: v == 0 -> break
        :: else -> k++
        fi
    :: else ->
        t = 0;
        break
    od
#ifdef MUTANT_SAME_TOKEN
    ;
    t = 1 + (c)*TOKENS
#endif
}

inline start(c) {
    draw_token(c);
    if
    :: t != 0 ->
        mine[c] = t;
        state[c] = TRYING;
        worth[c] = VALIDITY;
        send_all(c, command(SET, TTL, index_of(c)) + FRESH, QUEUE - 1);
        printf("client %d tries, token %d: SET NX to all\n", c + 1, t)
    :: else -> printf("client %d waits: all its tokens are remembered somewhere\n", c + 1)
    fi
}

#define is_acquiring(c) (state[c] == TRYING || state[c] == RAISING)

#if defined(MUTANT_NO_FRESH_CLOCK) || defined(MUTANT_VALIDITY_FROM_REPLY)
#define may_hold(c) (is_acquiring(c) && yes(c))
#else
#define may_hold(c) (is_acquiring(c) && yes(c) && worth[c] > 0)
#endif

/* Counters are not modelled here, but in fences.pml: a quorum's may agree, or not, at any time. */
inline raise(c) {
    close_round(c);
    state[c] = RAISING;
    worth[c] = VALIDITY;
    send_all(c, command(RENEW, TTL, index_of(c)) + FRESH, QUEUE - 1);
    printf("client %d raises the counters, token %d\n", c + 1, mine[c])
}

inline hold(c) {
    state[c] = HELD;
#ifdef MUTANT_VALIDITY_FROM_REPLY
    left[c] = VALIDITY;
#else
    left[c] = worth[c];
#endif
    uses[c] = 1;
    close_round(c);
    printf("client %d holds, validity %d\n", c + 1, left[c])
}

#ifdef MUTANT_UNDO_ONLY_GRANTED
#define undoes(c, n, sparing) (vote(c, n) == GRANTED)
#else
#define undoes(c, n, sparing) (!(sparing) || vote(c, n) != DENIED)
#endif

inline undo(c, n, sparing) {
    if
    :: undoes(c, n, sparing) -> send(c, n, command(RELEASE, 0, index_of(c)), QUEUE)
    :: else
    fi
}

/* A try failed, timed out, came too late, or was canceled. */
inline give_up(c, sparing) {
    undo(c, 0, sparing);
    undo(c, 1, sparing);
    undo(c, 2, sparing);
    printf("client %d gives up token %d, and sends its releases\n", c + 1, mine[c]);
    close_round(c);
    state[c] = IDLE;
    mine[c] = 0
}

inline renew(c) {
    close_round(c);
    state[c] = RENEWING;
    worth[c] = VALIDITY;
    send_all(c, command(RENEW, TTL, index_of(c)) + FRESH, QUEUE - 1);
    printf("client %d renews token %d\n", c + 1, mine[c])
}

#ifdef MUTANT_LATE_RENEWAL
#define may_prolong(c) (state[c] == RENEWING && yes(c) && worth[c] > 0)
#else
#define may_prolong(c) (state[c] == RENEWING && yes(c) && worth[c] > 0 && left[c] > 0)
#endif

/* The votes stay: nodes that turn out to lack the key are topped up. */
inline prolong(c) {
    not_revived = left[c] > 0;
#ifndef ONLY_EXCLUSIVE
    assert(not_revived);
#endif
    state[c] = HELD;
    left[c] = (left[c] > worth[c] -> left[c] : worth[c]);
    uses[c] = 1;
    worth[c] = 0;
    printf("client %d has renewed, validity %d\n", c + 1, left[c])
}

inline top_up(c, n) {
    vote(c, n) = NONE;
    send(c, n, command(SET, left[c] + DRIFT, index_of(c)), QUEUE - 1);
    printf("client %d tops node %c up\n", c + 1, 'A' + n)
}

inline fail_to_renew(c) {
    close_round(c);
    state[c] = HELD;
    printf("client %d gives up a renewal\n", c + 1)
}

inline lose(c) {
    close_round(c);
    state[c] = LOST;
    left[c] = 0;
    uses[c] = 0;
    printf("client %d notices that the lock is lost\n", c + 1)
}

inline release(c) {
    send_all(c, command(RELEASE, 0, index_of(c)), QUEUE);
    close_round(c);
    printf("client %d releases token %d\n", c + 1, mine[c]);
    state[c] = IDLE;
    mine[c] = 0;
    left[c] = 0;
    uses[c] = 0
}

/* ---- time ---- */

#define less_one(x) x = (x > 0 -> x - 1 : 0)

inline age_node(n) {
    less_one(life[n]);
    less_one(out[n]);
    token[n] = (life[n] > 0 -> token[n] : 0)
}

/* An application that checks its clock stops when the validity is over. */
inline age_client(c) {
    less_one(worth[c]);
    less_one(left[c])
#ifndef PAUSES
    ;
    uses[c] = uses[c] && left[c] > 0
#endif
}

inline tick() {
    age_node(0);
    age_node(1);
    age_node(2);
    age_client(0);
    age_client(1);
#if CLIENTS == 3
    age_client(2);
#endif
    printf("a tick\n")
}

/* ---- every step that the world can take ---- */

#define is_held(c) (state[c] == HELD || state[c] == RENEWING)

#define CLIENT_ACQUIRES(c)                                                                        \
    :: d_step { state[c] == IDLE -> start(c) }                                           \
    :: d_step { may_hold(c) -> hold(c) }                                                 \
    :: d_step { is_acquiring(c) -> give_up(c, false) }                                   \
    :: d_step { state[c] == TRYING && count(c, DENIED) > 0 -> give_up(c, true) }         \
    :: d_step { is_held(c) && left[c] == 0 -> lose(c) }                                  \
    :: d_step { is_held(c) || state[c] == LOST -> release(c) }

#define CLIENT_RAISES(c)                                                                          \
    :: d_step { may_hold(c) -> raise(c) }

#define CLIENT_RENEWS(c)                                                                          \
    :: d_step { is_held(c) && left[c] > 0 -> renew(c) }                                  \
    :: d_step { may_prolong(c) -> prolong(c) }                                           \
    :: d_step { state[c] == RENEWING && gone(c) -> lose(c) }                             \
    :: d_step { state[c] == RENEWING -> fail_to_renew(c) }                               \
    CLIENT_TOPS_UP(c, 0) CLIENT_TOPS_UP(c, 1) CLIENT_TOPS_UP(c, 2)

#define CLIENT_TOPS_UP(c, n)                                                                      \
    :: d_step { state[c] == HELD && vote(c, n) == MISSING && left[c] > 0 -> top_up(c, n) }

#define reads(c, n) (out[n] == 0 && wire(c, n, 0) != 0)
#define is_release(m) (kind_of(m) == RELEASE)

#define WIRE(c, n)                                                                                \
    :: d_step { reads(c, n) -> take_first(c, n); execute(c, n, 0) }                      \
    :: d_step { reads(c, n) && !is_release(wire(c, n, 0)) ->                                      \
                take_first(c, n); execute(c, n, 1) }                                     \
    WIRE_LOSES(c, n) WIRE_STRANDS(c, n)

#ifdef LOSSES
#define WIRE_LOSES(c, n) :: d_step { wire(c, n, 0) != 0 -> lose_first(c, n) }
#else
#define WIRE_LOSES(c, n)
#endif

#ifdef STRANDING
#define WIRE_STRANDS(c, n)                                                                        \
    :: d_step { stranded == 0 && wire(c, n, 0) != 0 && !is_release(wire(c, n, 0)) ->              \
                strand_first(c, n) }
#define STRANDED_LANDS                                                                            \
    :: d_step { stranded != 0 && out[stranded_node] == 0 -> land_stranded(0) }           \
    :: d_step { stranded != 0 && out[stranded_node] == 0 -> land_stranded(1) }
#else
#define WIRE_STRANDS(c, n)
#define STRANDED_LANDS
#endif

#define CLIENT(c)                                                                                 \
    CLIENT_ACQUIRES(c) CLIENT_IS_FENCED(c) CLIENT_EXTENDS(c) WIRE(c, 0) WIRE(c, 1) WIRE(c, 2)

#ifdef FENCED
#define CLIENT_IS_FENCED(c) CLIENT_RAISES(c)
#else
#define CLIENT_IS_FENCED(c)
#endif

#ifdef RENEWALS
#define CLIENT_EXTENDS(c) CLIENT_RENEWS(c)
#else
#define CLIENT_EXTENDS(c)
#endif

#ifdef RESTARTS
#define NODE_RESTARTS(n)                                                                          \
    :: d_step { out[n] == 0 -> disconnect(n);                                                     \
                printf("node %c restarts, with its data\n", 'A' + n) }
#else
#define NODE_RESTARTS(n)
#endif

#if defined(AMNESIA) || defined(AMNESIA_DELAYED)
#define NODE_FORGETS(n)                                                                           \
    :: d_step { out[n] == 0 -> disconnect(n); forget(n); OUT(n);                                  \
                printf("node %c restarts, without its data\n", 'A' + n) }
#else
#define NODE_FORGETS(n)
#endif
#ifdef AMNESIA_DELAYED
#define OUT(n) out[n] = TTL
#else
#define OUT(n) skip
#endif

#ifdef CLOCK_JUMPS
#define NODE_JUMPS(n)                                                                             \
    :: d_step { token[n] != 0 -> forget(n);                                                       \
                printf("the clock of node %c jumps: its key expires\n", 'A' + n) }
#else
#define NODE_JUMPS(n)
#endif

#define NODE(n) NODE_RESTARTS(n) NODE_FORGETS(n) NODE_JUMPS(n)

active proctype world() {
    do
    :: atomic {
        if
        CLIENT(0)
        CLIENT(1)
#if CLIENTS == 3
        CLIENT(2)
#endif
        NODE(0)
        NODE(1)
        NODE(2)
        STRANDED_LANDS
        :: d_step { tick() }
        fi;
        d_step { check() }
    }
    od
}
