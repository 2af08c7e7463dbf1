/*
 * Waiting in the queue: waiters with tickets, a queue of them at each of three nodes, and the
 * pushes of nodes that pass the key on. redlock.pml has the lock without waiting, its renewals and
 * restarts.
 *
 * There is one process, and each of its steps is atomic, as in redlock.pml; time is relative here
 * too. The worth of a push to the waiter (the expiry that the node pushed, by the upper bound of
 * the difference of the clocks) is counted down from the moment at which the node sends the push,
 * so that a late push is worth less.
 *
 * There are two searches. For exclusion, steps come in any order, and a node passes a free key on
 * to any waiter: tickets and entries have no effect. With LIVE the first waiter gets the key, and
 * no tick passes before everything that is due is done; faults end at any moment (`calm`), and then
 * each waiter must be served.
 *
 * README.md explains each switch (-D), what is bounded, and what is left out.
 */

/* ---- the bounds, and the terms of the lock ---- */

#ifndef TTL
#define TTL 3 /* ticks for which a node keeps a requested key */
#endif
#ifndef RESERVATION
#define RESERVATION 2 /* ticks for which a node keeps a key that it passed on */
#endif
#ifndef QUEUE
#define QUEUE 3 /* commands in flight on one wire */
#endif

#ifndef FREE
#define FREE 3 /* connections without a command in flight before a client asks again */
#endif

#define CLIENTS 2
#define NODES 3
#define QUORUM 2
#define DRIFT 1 /* ticks by which a node may be too early, and a clock may be misjudged */

#define VALIDITY (TTL - DRIFT)

#ifdef MUTANT_LOWER_BOUND
#define PUSHED RESERVATION
#else
#define PUSHED (RESERVATION - DRIFT) /* ticks that a push is worth when it is sent */
#endif

/* ---- tokens: a client's current one, and one that it has given up ---- */

#define CURRENT 0
#define OLD 1
#define TOKENS (2 * CLIENTS)

#define token_of(c, o) (1 + 2 * (c) + (o))
#define owner_of(t) (((t)-1) >> 1)
#define age_of(t) (((t)-1) & 1)
#define bit_of(t) (1 << ((t)-1))
#define bits_of(c) (3 << (2 * (c)))

/* ---- what a command is: a byte, 0 is none ---- */

#define ASK 1   /* the script QUEUE */
#define LEAVE 2 /* leave the queue, and pass the key on; a release is the same here */
#define GIVEN_UP 4 /* it is about the old token */
#define FRESH 8    /* its round still reads votes */

#define kind_of(m) ((m)&3)
#define is_fresh(m) (((m)&FRESH) != 0)
#define names(c, m) token_of(c, ((m) >> 2) & 1)

/* ---- the state ---- */

/* Of a node. */
byte token[NODES]; /* the key's value; 0: there is no key */
byte life[NODES];  /* ticks until it expires */
byte queue[NODES]; /* mask of the waiting tokens */
bit down[NODES];   /* it never answers (ONE_DOWN) */

/* Of a client: one request for the only key, or the resulting lock. */
#define IDLE 0
#define WAITING 1
#define HELD 2
/* until its old token is forgotten, so that the current one can become the old one */
#define ENDED 3

byte state[CLIENTS];
byte worth[CLIENTS];  /* ticks of validity that an answer to the last question gives */
byte left[CLIENTS];   /* ticks of validity left, by its own clock */
byte ticket[CLIENTS]; /* the rank of its request, starting at 0 */
bit due[CLIENTS];     /* LIVE: it has to ask again, or to requeue, before the next tick */
bit rests[CLIENTS];   /* LIVE: it makes no request before the next tick */
bit remembers[CLIENTS]; /* something in the world has its old token */

/* A grant or push that is worth nothing any more. With LIVE it still has to be given up. */
#ifdef LIVE
#define WORTHLESS 1
#define IS_LIVE 1
#else
#define WORTHLESS 0
#define IS_LIVE 0
#endif

/* Nodes that answered the last question with a grant, whether or not the client has seen it. */
bit grants[CLIENTS * NODES];
#define grant(c, n) grants[(c)*NODES + (n)]

/*
 * A push that is in flight, or was read: 0 none, otherwise 1 + the ticks that it is worth. The
 * client reads pushes at any time, or never, which models a late, doubled or lost push. Those of
 * the old token exist only for a mutant that counts them.
 */
byte pushes[CLIENTS * NODES];
#define push(c, n) pushes[(c)*NODES + (n)]
#ifdef MUTANT_STALE_PUSH_COUNTS
byte stale_pushes[CLIENTS * NODES];
#define stale_push(c, n) stale_pushes[(c)*NODES + (n)]
#else
#define stale_push(c, n) 0
#endif

/* The commands in flight, the oldest first: a connection keeps them in order. */
byte wires[CLIENTS * NODES * QUEUE];
#define wire(c, n, i) wires[((c)*NODES + (n)) * QUEUE + (i)]

bit calm; /* no more faults */

/* The chosen step. */
byte step;
byte who;
byte at;
byte heir;   /* the token to which a key is passed on; 0: none */
bit early;   /* the node's clock is fast by the full drift */

/* Scratch, within one step. */
byte i;
byte j;
byte k;
byte m;
byte n;
byte t;
byte v;

/* The properties; they are variables so that a violation is reported under their names. */
bool exclusive = true;
bool kept = true;
bool unseen = true;

#define larger(x, y) ((x) > (y) -> (x) : (y))
#define smaller(x, y) ((x) < (y) -> (x) : (y))

/* The worth of a node's grant to the client: 0 it has granted nothing, otherwise 1 + ticks. */
#define answered(c, n) (grant(c, n) -> 1 + worth[c] : 0)
#define value(c, n) larger(answered(c, n), larger(push(c, n), stale_push(c, n)))

#define granted(c) ((value(c, 0) > 0) + (value(c, 1) > 0) + (value(c, 2) > 0))
#define valid(c) ((value(c, 0) > 1) + (value(c, 1) > 1) + (value(c, 2) > 1))

#define is_split(c) (granted(c) > 0 && granted(c) < QUORUM)

/* ---- what is checked after every step ---- */

#define EXCLUSIVE (!(left[0] > 0 && left[1] > 0))

/* A validity that is not over relies on a quorum of nodes that keep the key at least as long. */
#define keeps(c, n) (token[n] == token_of(c, CURRENT) && life[n] >= left[c])
#define KEPT(c) (left[c] == 0 || keeps(c, 0) + keeps(c, 1) + keeps(c, 2) >= QUORUM)

inline check_kept() {
    kept = KEPT(0) && KEPT(1);
    assert(kept)
}

/* Each of these must be reachable, or the properties might hold only because nothing happens. */
#define pushed(c) ((push(c, 0) > 1) + (push(c, 1) > 1) + (push(c, 2) > 1))
#define has_old(c) (owns_old(c, 0) || owns_old(c, 1) || owns_old(c, 2))
#define owns_old(c, n) (token[n] == token_of(c, OLD))

#define HOLDER_1 (left[0] > 0)
#define HOLDER_2 (left[1] > 0)
#define PUSHED_QUORUM (pushed(0) >= QUORUM || pushed(1) >= QUORUM)
#define PUSHED_WHILE_HELD (left[0] > 0 && pushed(1) > 0)
#define REQUEUED (state[0] == WAITING && has_old(0) && granted(0) > 0)
#define NEXT_HOLDER (state[0] == HELD && left[0] == 0 && left[1] > 0)
#define SPLIT (calm && is_split(0) && is_split(1))
#define PASSED_TO_OLD (calm && life[0] == RESERVATION && owns_old(0, 0) && state[0] == WAITING)
#define SERVED_BY_REQUEUE (pushed(0) >= QUORUM && state[1] == WAITING && remembers[1])

/* ---- the wires ---- */

/* An ask leaves one slot of a wire free, so that what was requested can be given up. */
#define PLACES(what) (kind_of(what) == ASK -> QUEUE - 1 : QUEUE)

/*
 * Sends a command, unless the wire is full, or the node down. A command already in flight is not
 * sent twice, but its answer counts for the new round.
 */
inline send(c, n, what) {
    i = 0;
    do
    :: i < PLACES(what) && wire(c, n, i) != 0 && (wire(c, n, i) | FRESH) != ((what) | FRESH) -> i++
    :: else -> break
    od;
    if
    :: i < PLACES(what) && !down[n] -> wire(c, n, i) = what
    :: else
    fi
}

inline send_all(c, what) {
    send(c, 0, what);
    send(c, 1, what);
    send(c, 2, what)
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
 * The connection breaks before the node has read its first command. Giving up is then pending: it
 * is sent again, after the commands in flight by then.
 */
inline lose_first(c, n) {
    take_first(c, n);
    if
    :: kind_of(m) == LEAVE -> send(c, n, m)
    :: else
    fi;
    printf("a command of client %d to node %c is lost\n", c + 1, 'A' + n)
}

/* The answers of the client's round are no longer read. */
inline close_round(c) {
    worth[c] = 0;
    n = 0;
    do
    :: n < NODES ->
        grant(c, n) = 0;
#ifdef LIVE
        push(c, n) = 0; /* it was read before, or is lost */
#endif
        i = 0;
        do
        :: i < QUEUE ->
            wire(c, n, i) = wire(c, n, i) & ~FRESH;
            i++
        :: else -> break
        od;
        n++
    :: else -> break
    od
}

/* ---- a node ---- */

#define first(c, n) wire(c, n, 0)
#define reads(c, n) (first(c, n) != 0)
#define frees(c, n, m) (token[n] == (kind_of(m) == ASK -> 0 : names(c, m)))
#define extends(c, n, m) (kind_of(m) == ASK && token[n] == names(c, m))

#ifdef LIVE
/* The waiters after the node has read the command m of client c, unless it takes the key. */
#define queue_after(c, n, m)                                                                      \
    (kind_of(m) == ASK -> queue[n] | bit_of(names(c, m)) : queue[n] & ~bit_of(names(c, m)))

/* The first waiter has the smallest ticket; among the tokens of a client it is any. */
#define outranks(c, d, set) (((set)&bits_of(d)) == 0 || ticket[c] <= ticket[d])
#define is_first(c, set) (outranks(c, 0, set) && outranks(c, 1, set))
#define inherits(t, set) (((set)&bit_of(t)) != 0 && is_first(owner_of(t), set))

#define passes(c, n, h)                                                                           \
    (reads(c, n) && frees(c, n, first(c, n)) && inherits(h, queue_after(c, n, first(c, n))))
#define passes_to_none(c, n)                                                                      \
    (reads(c, n) && !(frees(c, n, first(c, n)) && queue_after(c, n, first(c, n)) != 0))
#else
/*
 * Entries are not needed, and the key may be refused to any client, as if another waiter were
 * first.
 */
#define queue_after(c, n, m) 0
#define passes(c, n, h)                                                                           \
    (reads(c, n) && frees(c, n, first(c, n)) && kind_of(first(c, n)) == ASK &&                    \
     names(c, first(c, n)) == h)
#define passes_to_none(c, n) reads(c, n)
#endif

inline pass_to_heir(n) {
    k = owner_of(heir);
    token[n] = heir;
    life[n] = RESERVATION - early;
    if
    :: age_of(heir) == CURRENT && state[k] == WAITING -> push(k, n) = 1 + PUSHED
    :: else
    fi;
    printf(" passes the key to token %d, and pushes that", heir)
}

/* Executes one command, m. */
inline execute(c, n) {
    take_first(c, n);
    t = names(c, m);
    v = 0;
    say_executed(c, n);
    if
    :: extends(c, n, m) ->
        v = 1;
        life[n] = (life[n] > TTL - early -> life[n] : TTL - early)
    :: else ->
        queue[n] = queue_after(c, n, m);
        token[n] = (kind_of(m) == LEAVE && token[n] == t -> 0 : token[n]);
        life[n] = (token[n] != 0 -> life[n] : 0);
        if
        :: heir == 0 -> skip
        :: heir == t ->
            v = 1;
            token[n] = t;
            life[n] = TTL - early
        :: else ->
            printf("; it");
            pass_to_heir(n)
        fi;
#ifdef LIVE
        queue[n] = (heir == 0 -> queue[n] : queue[n] & ~bit_of(heir))
#else
        skip
#endif
    fi;
    if
    :: early == 1 -> printf("; by its fast clock\n")
    :: else -> printf("\n")
    fi;
    if
    :: v == 1 && is_fresh(m) -> grant(c, n) = 1
    :: else
    fi
}

/* Gives a free key to a waiter. */
inline pass(n) {
    printf("node %c", 'A' + n);
    pass_to_heir(n);
    printf("\n")
}

inline say_executed(c, n) {
    if
    :: kind_of(m) == ASK -> printf("node %c executes QUEUE, token %d", 'A' + n, t)
    :: else -> printf("node %c executes LEAVE, token %d", 'A' + n, t)
    fi
}

/* ---- a client ---- */

inline set_ticket(c) {
    i = 0;
    do
    :: i < CLIENTS ->
        ticket[i] = (ticket[i] > ticket[c] -> ticket[i] - 1 : ticket[i]);
        i++
    :: else -> break
    od;
    ticket[c] = CLIENTS - 1
}

/* Asks for an entry, or again for its own. */
inline ask(c) {
    due[c] = 0;
    worth[c] = VALIDITY;
    send_all(c, ASK + FRESH)
}

inline start(c) {
    state[c] = WAITING;
#ifdef LIVE
    set_ticket(c);
#endif
    ask(c);
    printf("client %d asks, token %d: QUEUE to all\n", c + 1, token_of(c, CURRENT))
}

inline ask_again(c) {
    close_round(c);
    ask(c);
    printf("client %d asks again, token %d: QUEUE to all\n", c + 1, token_of(c, CURRENT))
}

inline rename_at(c, n) {
    token[n] = (token[n] == token_of(c, CURRENT) -> token_of(c, OLD) : token[n]);
    queue[n] = (queue[n] & bit_of(token_of(c, CURRENT)) ->
                queue[n] & ~bits_of(c) | bit_of(token_of(c, OLD)) : queue[n]);
#ifdef MUTANT_STALE_PUSH_COUNTS
    stale_push(c, n) = push(c, n);
#endif
    push(c, n) = 0;
    i = 0;
    do
    :: i < QUEUE ->
        wire(c, n, i) = (wire(c, n, i) != 0 -> wire(c, n, i) | GIVEN_UP : 0);
        i++
    :: else -> break
    od
}

/* Makes the current token the old one, of which nothing is remembered. */
inline rename(c) {
    rename_at(c, 0);
    rename_at(c, 1);
    rename_at(c, 2)
}

/* Gives up its grants and its entry for an entry under a new token and the old ticket. */
inline requeue(c) {
    close_round(c);
#ifdef MUTANT_SAME_TOKEN
    send_all(c, LEAVE);
    ask(c);
#else
    rename(c);
    ask(c);
    send_all(c, LEAVE + GIVEN_UP);
#endif
    printf("client %d requeues, token %d now\n", c + 1, token_of(c, CURRENT))
}

/* The second largest of three: a quorum lasts as long. */
#define second(x, y, z) larger(smaller(x, y), smaller(larger(x, y), z))

inline hold(c) {
#ifdef MUTANT_LONGEST_GRANT
    v = larger(larger(value(c, 0), value(c, 1)), value(c, 2));
#else
    v = second(value(c, 0), value(c, 1), value(c, 2));
#endif
    close_round(c);
    state[c] = HELD;
    left[c] = v - 1;
    due[c] = 0;
    printf("client %d holds, validity %d\n", c + 1, left[c])
}

/* Releases, or gives up its request. */
inline end(c) {
    close_round(c);
    send_all(c, LEAVE);
    state[c] = ENDED;
    left[c] = 0;
    due[c] = 0;
    rests[c] = IS_LIVE;
    printf("client %d has done with token %d: LEAVE to all\n", c + 1, token_of(c, CURRENT))
}

/* The channel to a node breaks: a push would have no listener, so the client loses its entry. */
inline lose_channel(c, n) {
    queue[n] = queue[n] & ~bits_of(c);
    push(c, n) = 0
}

/* The client's process ends, and another one replaces it. Keys stay until they expire. */
inline die(c) {
    close_round(c);
    n = 0;
    do
    :: n < NODES ->
        lose_channel(c, n);
        i = 0;
        do
        :: i < QUEUE ->
            wire(c, n, i) = 0;
            i++
        :: else -> break
        od;
        n++
    :: else -> break
    od;
    state[c] = ENDED;
    left[c] = 0;
    due[c] = 0;
    printf("client %d dies\n", c + 1)
}

/* ---- faults ---- */

inline lose_push(c, n) {
    push(c, n) = 0;
    printf("a push of node %c to client %d is lost\n", 'A' + n, c + 1)
}

/* ---- time ---- */

#define less_one(x) x = (x > 0 -> x - 1 : 0)


#define less_one_worth(x) x = (x > 2 -> x - 1 : (x > 0 -> WORTHLESS : 0))

#ifdef MUTANT_RESERVATION_FROM_RECEIPT
#define age_push(x) skip
#else
#define age_push(x) less_one_worth(x)
#endif

/* Answers to a question that was asked too long ago are worth nothing. */
#ifdef LIVE
#define forget_grants(c) skip
#else
inline forget_grants(c) {
    if
    :: worth[c] == 0 -> close_round(c)
    :: else
    fi
}
#endif

inline age_client(c) {
    less_one(worth[c]);
    forget_grants(c);
    less_one(left[c]);
#ifdef MUTANT_NO_POLL
    due[c] = is_split(c) && state[c] == WAITING;
#else
    due[c] = IS_LIVE && state[c] == WAITING;
#endif
    rests[c] = 0
}

inline tick() {
    n = 0;
    do
    :: n < NODES ->
        less_one(life[n]);
        token[n] = (life[n] > 0 -> token[n] : 0);
        k = 0;
        do
        :: k < CLIENTS ->
            age_push(push(k, n));
#ifdef MUTANT_STALE_PUSH_COUNTS
            age_push(stale_push(k, n));
#endif
            k++
        :: else -> break
        od;
        n++
    :: else -> break
    od;
    age_client(0);
    age_client(1);
    printf("a tick\n")
}

/* ---- after every step ---- */

/*
 * Removes commands that have no effect any more, as in redlock.pml: leaving where the token neither
 * is nor will be. v: a mask of the tokens that the node may have, or in its queue, when it reads
 * the next command.
 */
inline tidy_wire(c, n) {
    v = queue[n] | (token[n] != 0 -> bit_of(token[n]) : 0);
    i = 0;
    j = 0;
    do
    :: i < QUEUE && wire(c, n, i) != 0 ->
        m = wire(c, n, i);
        wire(c, n, i) = 0;
        t = names(c, m);
        if
        :: kind_of(m) == ASK || (v & bit_of(t)) != 0 ->
            wire(c, n, j) = m;
            j++
        :: else
        fi;
        v = (kind_of(m) == ASK -> v | bit_of(t) : v);
        i++
    :: else -> break
    od
}

/* A push exists for a waiter only. Its token, once given up, leaves the node in any case. */
inline tidy_push(c, n) {
    if
    :: state[c] != WAITING ->
        push(c, n) = 0;
#ifdef MUTANT_STALE_PUSH_COUNTS
        stale_push(c, n) = 0;
#endif
        skip
    :: else
    fi
}

/* Checks whether anything remembers its old token. */
inline look_for_old(c) {
    t = token_of(c, OLD);
    v = 0;
    n = 0;
    do
    :: n < NODES ->
        v = v || token[n] == t || (queue[n] & bit_of(t));
        i = 0;
        do
        :: i < QUEUE ->
            v = v || (wire(c, n, i) & GIVEN_UP);
            i++
        :: else -> break
        od;
        n++
    :: else -> break
    od;
    remembers[c] = v
}

inline tidy(c) {
    n = 0;
    do
    :: n < NODES ->
        tidy_wire(c, n);
        tidy_push(c, n);
        n++
    :: else -> break
    od;
    look_for_old(c);
    if
    :: state[c] == ENDED && !remembers[c] ->
        rename(c);
        state[c] = IDLE;
        look_for_old(c)
    :: else
    fi
}

/*
 * As in redlock.pml, worlds that differ only by a permutation are searched as one. With LIVE one
 * client is watched, and the clients keep their names.
 */
#if defined(NAMED) || defined(MUTANT_STALE_PUSH_COUNTS)
inline put_all_in_order() {
    skip
}
#else
#define swap(x, y)                                                                                \
    v = x;                                                                                        \
    x = y;                                                                                        \
    y = v

/* t: 0 while equal, 1 when the first comes before the second, 2 when after it. */
#define compare(x, y) t = (t > 0 -> t : (x < y -> 1 : (x > y -> 2 : 0)))

inline compare_client(c, a, b) {
    compare(grant(c, a), grant(c, b));
    compare(push(c, a), push(c, b));
    i = 0;
    do
    :: i < QUEUE && t == 0 ->
        compare(wire(c, a, i), wire(c, b, i));
        i++
    :: else -> break
    od
}

/* Swaps the dealings of client c with node a and those of client d with node b. */
inline swap_ends(c, a, d, b) {
    swap(grant(c, a), grant(d, b));
    swap(push(c, a), push(d, b));
    i = 0;
    do
    :: i < QUEUE ->
        swap(wire(c, a, i), wire(d, b, i));
        i++
    :: else -> break
    od
}

inline put_nodes_in_order(a, b) {
    t = 0;
    compare(down[a], down[b]);
    compare(token[a], token[b]);
    compare(life[a], life[b]);
    compare(queue[a], queue[b]);
    k = 0;
    do
    :: k < CLIENTS && t == 0 ->
        compare_client(k, a, b);
        k++
    :: else -> break
    od;
    if
    :: t == 2 ->
        swap(down[a], down[b]);
        swap(token[a], token[b]);
        swap(life[a], life[b]);
        swap(queue[a], queue[b]);
        k = 0;
        do
        :: k < CLIENTS ->
            swap_ends(k, a, k, b);
            k++
        :: else -> break
        od
    :: else
    fi
}

#ifdef LIVE
inline put_clients_in_order(c, d) {
    skip
}
#else
#define other(x, c, d) (owner_of(x) == (c) -> (x) + 2 * ((d) - (c)) : \
                        (owner_of(x) == (d) -> (x) - 2 * ((d) - (c)) : (x)))

inline put_clients_in_order(c, d) {
    t = 0;
    compare(state[c], state[d]);
    compare(left[c], left[d]);
    compare(worth[c], worth[d]);
    compare(remembers[c], remembers[d]);
    if
    :: t == 2 ->
        swap(state[c], state[d]);
        swap(left[c], left[d]);
        swap(worth[c], worth[d]);
        swap(remembers[c], remembers[d]);
        n = 0;
        do
        :: n < NODES ->
            swap_ends(c, n, d, n);
            token[n] = (token[n] == 0 -> 0 : other(token[n], c, d));
            v = queue[n] & (bits_of(c) | bits_of(d));
            queue[n] = queue[n] - v |
                      (v >> (2 * ((d) - (c)))) & bits_of(c) | (v << (2 * ((d) - (c)))) & bits_of(d);
            n++
        :: else -> break
        od
    :: else
    fi
}
#endif

inline put_all_in_order() {
    put_clients_in_order(0, 1);
    put_nodes_in_order(0, 1);
    put_nodes_in_order(1, 2);
    put_nodes_in_order(0, 1)
}
#endif

/* Prints the world after each step of a trace; costs the search nothing. */
inline print_world() {
    printf("    A %d (%d) %x  B %d (%d) %x  C %d (%d) %x", token[0], life[0], queue[0], token[1],
           life[1], queue[1], token[2], life[2], queue[2]);
    printf(" | client 1: %d", left[0]);
    printf(" | client 2: %d", left[1]);
    printf("\n")
}

inline check() {
    tidy(0);
    tidy(1);
#ifdef PROBE
    unseen = !(PROBE);
    assert(unseen);
#else
    exclusive = EXCLUSIVE;
    assert(exclusive);
#ifndef ONLY_EXCLUSIVE
    check_kept();
#endif
#endif
    print_world();
    put_all_in_order();
    step = 0;
    who = 0;
    at = 0;
    heir = 0;
    early = 0;
    i = 0;
    j = 0;
    k = 0;
    m = 0;
    n = 0;
    t = 0;
    v = 0
}

/* ---- every step that the world can take ---- */

#define START 1
#define ASK_AGAIN 2
#define REQUEUE 3
#define HOLD 4
#define END 5
#define EXECUTE 6
#define PASS 7
#define LOSE_COMMAND 8
#define LOSE_PUSH 9
#define LOSE_CHANNEL 10
#define DIE 11
#define CALM 12
#define TICK 13

#define STEP(guard, what, c, n, h, o)                                                             \
    :: d_step { (guard) -> step = what; who = c; at = n; heir = h; early = o }

#define free_wires(c) ((first(c, 0) == 0) + (first(c, 1) == 0) + (first(c, 2) == 0))
#define may_ask(c) (free_wires(c) >= FREE)

#ifdef LIVE
#define IN_TIME(c) due[c]
#define MAY_POLL false
#else
#define IN_TIME(c) true
#define MAY_POLL true
#endif

#ifdef MUTANT_NO_REQUEUE
#define requeues(c) false
#else
#define requeues(c) (may_ask(c) && state[c] == WAITING && is_split(c) && !remembers[c] && IN_TIME(c))
#endif

/* With LIVE a client asks again, or requeues, once for each tick; otherwise at any time. */
#define asks_again(c) (may_ask(c) && state[c] == WAITING && (!requeues(c) || MAY_POLL) && IN_TIME(c))

/* Clients other than the watched one may give up at any time. */
#define ends(c) (state[c] == HELD || (state[c] == WAITING && GIVES_UP(c)))

#ifdef LIVE
#define GIVES_UP(c) !(calm && c == 0)
#elif defined(CANCELS)
#define GIVES_UP(c) true
#else
#define GIVES_UP(c) false
#endif

#define can_hold(c) (state[c] == WAITING && valid(c) >= QUORUM)

#define CLIENT_ACTS(c)                                                                            \
    STEP(state[c] == IDLE && !rests[c] && may_ask(c), START, c, 0, 0, 0)                          \
    STEP(asks_again(c), ASK_AGAIN, c, 0, 0, 0)                                                    \
    STEP(requeues(c), REQUEUE, c, 0, 0, 0)                                                        \
    STEP(can_hold(c), HOLD, c, 0, 0, 0)                                                           \
    STEP(ends(c), END, c, 0, 0, 0)

#define WIRE(c, n)                                                                                \
    STEP(passes_to_none(c, n) && !extends(c, n, first(c, n)), EXECUTE, c, n, 0, 0)                \
    STEP(reads(c, n) && extends(c, n, first(c, n)), EXECUTE, c, n, 0, 0)                          \
    STEP(reads(c, n) && extends(c, n, first(c, n)), EXECUTE, c, n, 0, 1)                          \
    PASSES(c, n, 1) PASSES(c, n, 2) PASSES(c, n, 3) PASSES(c, n, 4)

#define PASSES(c, n, h)                                                                           \
    STEP(passes(c, n, h), EXECUTE, c, n, h, 0)                                                    \
    STEP(passes(c, n, h), EXECUTE, c, n, h, 1)

#ifdef LOSSES
#define FAULTS(c, n)                                                                              \
    STEP(reads(c, n) && !calm, LOSE_COMMAND, c, n, 0, 0)                                          \
    FAULT_OF_PUSH(c, n)
#else
#define FAULTS(c, n)
#endif
#ifdef LIVE
#define FAULT_OF_PUSH(c, n) STEP(push(c, n) > 0 && !calm, LOSE_PUSH, c, n, 0, 0)
#else
#define FAULT_OF_PUSH(c, n)
#endif

#ifdef LIVE
#define GIFT(c, n)
#else
#define GIFT(c, n)                                                                                \
    STEP(token[n] == 0 && state[c] == WAITING, PASS, c, n, token_of(c, CURRENT), 0)               \
    STEP(token[n] == 0 && state[c] == WAITING, PASS, c, n, token_of(c, CURRENT), 1)
#endif

#ifdef CHANNELS
#define CHANNEL(c, n)                                                                             \
    STEP(!calm && ((queue[n] & bits_of(c)) != 0), LOSE_CHANNEL, c, n, 0, 0)
#else
#define CHANNEL(c, n)
#endif

#ifdef DEATHS
#define DEATH(c) STEP((state[c] == WAITING || state[c] == HELD) && !calm, DIE, c, 0, 0, 0)
#else
#define DEATH(c)
#endif

#define CLIENT_AT(c, n) WIRE(c, n) GIFT(c, n) FAULTS(c, n) CHANNEL(c, n)

#define CLIENT(c) CLIENT_ACTS(c) DEATH(c) CLIENT_AT(c, 0) CLIENT_AT(c, 1) CLIENT_AT(c, 2)

#define idle_at(c, n) (first(c, n) == 0)
#define done(c) (!can_hold(c) && !due[c] && !(state[c] == HELD && left[c] == 0))
#define quiet(c) (done(c) && idle_at(c, 0) && idle_at(c, 1) && idle_at(c, 2))

#define all_is_done (quiet(0) && quiet(1))

#ifdef LIVE
#define MAY_TICK all_is_done
#else
#define MAY_TICK true
#endif

inline take_step() {
    if
    :: step == START -> start(who)
    :: step == ASK_AGAIN -> ask_again(who)
    :: step == REQUEUE -> requeue(who)
    :: step == HOLD -> hold(who)
    :: step == END -> end(who)
    :: step == EXECUTE -> execute(who, at)
    :: step == PASS -> pass(at)
    :: step == LOSE_COMMAND -> lose_first(who, at)
    :: step == LOSE_PUSH -> lose_push(who, at)
    :: step == LOSE_CHANNEL -> lose_channel(who, at)
    :: step == DIE -> die(who)
    :: step == CALM -> calm = 1
    :: step == TICK -> tick()
    fi
}

active proctype world() {
    d_step {
        i = 0;
        do
        :: i < CLIENTS ->
            ticket[i] = i;
            i++
        :: else -> break
        od;
        i = 0;
#ifdef ONE_DOWN
        down[2] = 1
#endif
    }
    do
    :: atomic {
        if
        CLIENT(0)
        CLIENT(1)
#ifdef LIVE
        STEP(!calm, CALM, 0, 0, 0, 0)
#endif
        STEP(MAY_TICK, TICK, 0, 0, 0, 0)
        fi;
        d_step {
            take_step();
            check()
        }
    }
    od
}

#ifdef SERVED
ltl served { !<>[](calm && state[0] == WAITING) }
#endif
