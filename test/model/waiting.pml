/*
 * Waiting in the queue: two waiters with tickets, a queue of them at each of three nodes, the
 * pushes of nodes that pass the key on, and the wires between them.
 *
 * There is one process, and each of its steps is atomic: a client acts, a node executes one
 * command, a fault happens, or one tick of time passes. Time is relative (the rest of a TTL, of a
 * validity), and a token is reused when nothing in the world remembers it. So ticks, requests and
 * faults are not counted, and the search covers any number of them.
 *
 * No tick passes before everything that is due is done. Faults end at any moment (`calm`), and then
 * each waiter must be served.
 *
 * Answers and pushes need no messages: they are recorded when the node executes. The worth of a
 * push (the expiry that the node pushed, by the upper bound of the difference of the clocks) is
 * counted down from the moment at which the node sends it.
 *
 * README.md explains each switch (-D), what is bounded, and what is left out.
 */

/* ---- the bounds, and the terms of the lock ---- */

#ifndef TTL
#define TTL 3 /* ticks for which a node keeps a requested key */
#endif
#ifndef RESERVATION
#define RESERVATION 3 /* ticks for which a node keeps a key that it passed on */
#endif

#define CLIENTS 2
#define NODES 3
#define QUORUM 2
#define QUEUE 3 /* commands in flight on one wire */
#define DRIFT 1 /* ticks by which a node may be too early, and a clock may be misjudged */

#define VALIDITY (TTL - DRIFT)
#define PUSHED (RESERVATION - DRIFT) /* ticks that a push is worth when it is sent */

/* ---- tokens: a client's current one, and one that it has given up ---- */

#define CURRENT 0
#define OLD 1

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
bit due[CLIENTS];     /* it has to ask again, or to requeue, before the next tick */
bit rests[CLIENTS];   /* it makes no request before the next tick */
bit remembers[CLIENTS]; /* something in the world has its old token */

/* Nodes that answered the last question with a grant. */
bit grants[CLIENTS * NODES];
#define grant(c, n) grants[(c)*NODES + (n)]

/* A push: 0 none, otherwise 1 + the ticks that it is worth. */
byte pushes[CLIENTS * NODES];
#define push(c, n) pushes[(c)*NODES + (n)]

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
bool unseen = true;

#define larger(x, y) ((x) > (y) -> (x) : (y))
#define smaller(x, y) ((x) < (y) -> (x) : (y))

/*
 * The worth of a node's grant to the client: 0 it has granted nothing, otherwise 1 + ticks. A grant
 * that is worth nothing any more still has to be given up.
 */
#define answered(c, n) (grant(c, n) -> 1 + worth[c] : 0)
#define value(c, n) larger(answered(c, n), push(c, n))

#define granted(c) ((value(c, 0) > 0) + (value(c, 1) > 0) + (value(c, 2) > 0))
#define valid(c) ((value(c, 0) > 1) + (value(c, 1) > 1) + (value(c, 2) > 1))

#define is_split(c) (granted(c) > 0 && granted(c) < QUORUM)

/* ---- what is checked after every step ---- */

/* Two holders at a time would be served easily. */
#define EXCLUSIVE (!(left[0] > 0 && left[1] > 0))

/* Each of these must be reachable, or waiters might be served only because nothing happens. */
#define pushed(c) ((push(c, 0) > 1) + (push(c, 1) > 1) + (push(c, 2) > 1))
#define owns_old(c, n) (token[n] == token_of(c, OLD))

#define HANDED_OVER (pushed(0) >= QUORUM || pushed(1) >= QUORUM)
#define SPLIT (calm && is_split(0) && is_split(1))
#define PASSED_TO_OLD (calm && life[0] == RESERVATION && owns_old(0, 0) && state[0] == WAITING)
#define SERVED_BY_REQUEUE (pushed(0) >= QUORUM && state[1] == WAITING && remembers[1])

/* ---- the wires ---- */

/* Sends a command, unless the node is down. A client asks on idle wires, so there is room. */
inline send(c, n, what) {
    i = 0;
    do
    :: wire(c, n, i) != 0 ->
        i++;
        assert(i < QUEUE)
    :: else -> break
    od;
    if
    :: !down[n] -> wire(c, n, i) = what
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
        push(c, n) = 0; /* it was read before, or is lost */
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
            k = owner_of(heir);
            token[n] = heir;
            life[n] = RESERVATION - early;
            if
            :: age_of(heir) == CURRENT && state[k] == WAITING -> push(k, n) = 1 + PUSHED
            :: else
            fi;
            printf("; it passes the key to token %d, and pushes that", heir)
        fi;
        queue[n] = (heir == 0 -> queue[n] : queue[n] & ~bit_of(heir))
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
    set_ticket(c);
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
    rename(c);
    ask(c);
    send_all(c, LEAVE + GIVEN_UP);
    printf("client %d requeues, token %d now\n", c + 1, token_of(c, CURRENT))
}

/* The second largest of three: a quorum lasts as long. */
#define second(x, y, z) larger(smaller(x, y), smaller(larger(x, y), z))

inline hold(c) {
    v = second(value(c, 0), value(c, 1), value(c, 2));
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
    rests[c] = 1;
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

/* A push that is worth nothing any more stays one. */
#define less_one_worth(x) x = (x > 2 -> x - 1 : (x > 0 -> 1 : 0))

inline age_client(c) {
    less_one(worth[c]);
    less_one(left[c]);
#ifdef MUTANT_NO_POLL
    due[c] = is_split(c) && state[c] == WAITING;
#else
    due[c] = state[c] == WAITING;
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
            less_one_worth(push(k, n));
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
 * Removes commands that have no effect any more: leaving where the token neither is nor will be.
 * Otherwise the worlds that differ only in such commands would be searched one by one. v: a mask of
 * the tokens that the node may have, or in its queue, when it reads the next command.
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
 * The nodes are alike, and no property names one of them: worlds that differ only by a permutation
 * of the nodes are searched as one, in which they are in ascending order. One client is watched, so
 * the clients keep their names. With NAMED, for a trace, so do the nodes.
 */
#ifdef NAMED
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

inline swap_client(c, a, b) {
    swap(grant(c, a), grant(c, b));
    swap(push(c, a), push(c, b));
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
            swap_client(k, a, b);
            k++
        :: else -> break
        od
    :: else
    fi
}

inline put_all_in_order() {
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
#define LOSE_COMMAND 7
#define LOSE_PUSH 8
#define LOSE_CHANNEL 9
#define DIE 10
#define CALM 11
#define TICK 12

#define STEP(guard, what, c, n, h, o)                                                             \
    :: d_step { (guard) -> step = what; who = c; at = n; heir = h; early = o }

#define idle_at(c, n) (first(c, n) == 0)
#define is_idle(c) (idle_at(c, 0) && idle_at(c, 1) && idle_at(c, 2))

/* A client asks again, or requeues, once for each tick. */
#define has_to_ask(c) (is_idle(c) && state[c] == WAITING && due[c])

#ifdef MUTANT_NO_REQUEUE
#define requeues(c) false
#else
#define requeues(c) (has_to_ask(c) && is_split(c) && !remembers[c])
#endif

/* The client that is not watched may give up at any time. */
#define ends(c) (state[c] == HELD || (state[c] == WAITING && !(calm && c == 0)))

#define can_hold(c) (state[c] == WAITING && valid(c) >= QUORUM)

#define CLIENT_ACTS(c)                                                                            \
    STEP(state[c] == IDLE && !rests[c] && is_idle(c), START, c, 0, 0, 0)                          \
    STEP(has_to_ask(c) && !requeues(c), ASK_AGAIN, c, 0, 0, 0)                                    \
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
    STEP(push(c, n) > 0 && !calm, LOSE_PUSH, c, n, 0, 0)
#else
#define FAULTS(c, n)
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

#define CLIENT_AT(c, n) WIRE(c, n) FAULTS(c, n) CHANNEL(c, n)

#define CLIENT(c) CLIENT_ACTS(c) DEATH(c) CLIENT_AT(c, 0) CLIENT_AT(c, 1) CLIENT_AT(c, 2)

/* A tick passes when all is done that is due. */
#define is_done(c) (is_idle(c) && !can_hold(c) && !due[c] && !(state[c] == HELD && left[c] == 0))

inline take_step() {
    if
    :: step == START -> start(who)
    :: step == ASK_AGAIN -> ask_again(who)
    :: step == REQUEUE -> requeue(who)
    :: step == HOLD -> hold(who)
    :: step == END -> end(who)
    :: step == EXECUTE -> execute(who, at)
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
        ticket[1] = 1;
#ifdef ONE_DOWN
        down[2] = 1
#endif
    }
    do
    :: atomic {
        if
        CLIENT(0)
        CLIENT(1)
        STEP(!calm, CALM, 0, 0, 0, 0)
        STEP(is_done(0) && is_done(1), TICK, 0, 0, 0, 0)
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
