/*
 * The fences of fenced locks as libredlock makes them: clients, three nodes with a counter each,
 * and the wires between them. redlock.pml has the lock itself; here is no time at all. A key may
 * vanish at any moment, and a client may hold as soon as a quorum lets it, however late that is: so
 * fences are checked without relying on clocks, on releases, or on mutual exclusion.
 *
 * SET makes the counter any larger number: one more, or the hint (the wall clock of a client, wrong
 * by any amount), or the result of what other clients did there meanwhile. So only the order of the
 * numbers in the world matters, and after each step they are replaced by their ranks. Neither
 * fences nor tries are counted, and the search covers any number of them.
 *
 * Two clients are enough: each property is about two acquisitions, and all that others can do
 * between them is to keep a key away and to make its counter larger. A client has one try that is
 * remembered; one that is remembered longer is the other client's here.
 *
 * README.md explains each switch (-D), and what is left out.
 */

#define CLIENTS 2
#define NODES 3

/* ---- the state ---- */

byte owner[NODES]; /* owner of the key's token: the client plus 1; 0: there is no key */

#define IDLE 0
#define TRYING 1
#define RAISING 2
#define HELD 3 /* and the application uses the resource, perhaps long after its validity */
#define OVER 4

#ifdef ONCE
#define DONE OVER /* each client tries once: smaller, and enough to find a mutant's fault */
#else
#define DONE IDLE
#endif

byte state[CLIENTS];
bit after[CLIENTS]; /* its acquisition began after the watched fence was reported */

/* The commands in flight, a mask for each connection; they are read in this order. */
#define SET 1   /* SET key token NX, and its counter becomes larger */
#define RAISE 2 /* compare, and make the counter at least the client's fence */

byte wires[CLIENTS * NODES];
#define wire(c, n) wires[(c)*NODES + (n)]

/* All numbers of the world, as ranks; 0: none. */
#define ANSWERS NODES
#define FENCE (ANSWERS + CLIENTS * NODES)
#define WATCHED (FENCE + CLIENTS)
#define NUMBERS (WATCHED + 1)

byte number[NUMBERS];

#define counter(n) number[n]
#define answer(c, n) number[ANSWERS + (c)*NODES + (n)] /* by a node, in the latest round */
#define fence(c) number[FENCE + (c)]              /* the number to which the client raises */
#define watched number[WATCHED]                   /* the fence of any one acquisition so far */

bool again = false; /* in this step a client found that it has to raise once more */

/* Scratch, within one step. */
byte i;
byte j;
byte v;
byte fresh;
byte top;
int seen;

/* The properties; they are variables so that a violation is reported under their names. */
bool fences_grow = true;
bool fences_differ = true;
bool unseen = true;

/* Each of these must be reachable, or the properties might hold only because nothing happens. */
#define REPORTED_AT_ONCE (state[0] == HELD && wire(0, 0) == SET) /* no command to raise after it */
#define RAISED (state[0] == HELD && fence(0) != 0)
#define RAISED_AGAIN again
#define NEXT_FENCE (state[0] == HELD && after[0])
#define TWO_HOLDERS (state[0] == HELD && state[1] == HELD)
#define STALE (state[0] == HELD && fence(0) != 0 && fence(0) < watched)

/* ---- numbers ---- */

#define larger(x, y) ((x) > (y) -> (x) : (y))
#define smaller(x, y) ((x) < (y) -> (x) : (y))

inline rank_all() {
    seen = 0;
    i = 0;
    do
    :: i < NUMBERS ->
        seen = seen | 1 << number[i];
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < NUMBERS ->
        v = 0;
        j = 1;
        do
        :: j <= number[i] ->
            v = v + ((seen >> j) & 1);
            j++
        :: else -> break
        od;
        number[i] = v;
        i++
    :: else -> break
    od
}

/* Makes room between any two numbers; `top` is larger than all. */
inline spread_all() {
    top = 0;
    i = 0;
    do
    :: i < NUMBERS ->
        number[i] = 2 * number[i];
        top = larger(top, number[i]);
        i++
    :: else -> break
    od;
    top++
}

/* ---- a client ---- */

inline send_all(c, what) {
    wire(c, 0) = wire(c, 0) | what;
    wire(c, 1) = wire(c, 1) | what;
    wire(c, 2) = wire(c, 2) | what
}

/* The answers of the client's round are no longer read. */
inline close_round(c) {
    answer(c, 0) = 0;
    answer(c, 1) = 0;
    answer(c, 2) = 0
}

/* Forgets the rest of the client's last try: the key vanishes, and commands are lost. */
inline forget(c, n) {
    wire(c, n) = 0;
    owner[n] = (owner[n] == c + 1 -> 0 : owner[n])
}

inline start(c) {
    forget(c, 0);
    forget(c, 1);
    forget(c, 2);
    fence(c) = 0;
    after[c] = watched != 0;
    state[c] = TRYING;
    send_all(c, SET);
    printf("client %d tries: SET NX to all\n", c + 1)
}

/*
 * The client reads two answers, a quorum: it never waits for the third. If they are equal, they are
 * the fence; otherwise it raises to the larger one, and asks again.
 */
#if defined(MUTANT_NO_RAISE)
#define fence_of(c, a, b) larger(answer(c, a), answer(c, b))
#define agree(c, a, b) true
#elif defined(MUTANT_NOT_LARGEST)
#define fence_of(c, a, b) smaller(answer(c, a), answer(c, b))
#define agree(c, a, b) true
#elif defined(MUTANT_FURTHER_COUNTS)
#define fence_of(c, a, b) (state[c] == RAISING -> fence(c) : larger(answer(c, a), answer(c, b)))
#define agree(c, a, b) (state[c] == RAISING || answer(c, a) == answer(c, b))
#else
#define fence_of(c, a, b) larger(answer(c, a), answer(c, b))
#define agree(c, a, b) (answer(c, a) == answer(c, b))
#endif

#define is_acquiring(c) (state[c] == TRYING || state[c] == RAISING)
#define looks(c, a, b) (is_acquiring(c) && answer(c, a) != 0 && answer(c, b) != 0)

inline hold(c, a, b) {
    v = fence_of(c, a, b);
    printf("client %d holds, fence %d\n", c + 1, v);
    fences_grow = !after[c] || v > watched;
    assert(fences_grow);
    fences_differ = v != watched;
    assert(fences_differ);
    close_round(c);
    state[c] = HELD
}

inline raise(c, a, b) {
    fence(c) = fence_of(c, a, b);
    again = state[c] == RAISING;
    close_round(c);
    state[c] = RAISING;
    send_all(c, RAISE);
    printf("client %d raises to %d\n", c + 1, fence(c))
}

/* A try failed or is late, or the lock was released or lost: keys may vanish in any case. */
inline end(c) {
    close_round(c);
    state[c] = DONE;
    printf("client %d has done with its try\n", c + 1)
}

/* ---- a node ---- */

#ifdef MUTANT_CLOCK_ALONE
#define FROM(n) 1
#else
#define FROM(n) counter(n) + 1
#endif

/* The counter becomes any number between `fresh` and `top`. */
inline take(c, n) {
    wire(c, n) = wire(c, n) - SET;
    fresh = 0;
    top = 0;
    if
    :: owner[n] == 0 ->
        owner[n] = c + 1;
        spread_all();
        fresh = FROM(n)
    :: else
    fi
}

inline record_taken(c, n) {
    if
    :: fresh != 0 ->
        counter(n) = fresh;
        answer(c, n) = (state[c] == TRYING -> fresh : 0);
        printf("node %c executes SET NX of client %d: done\n", 'A' + n, c + 1)
    :: else -> printf("node %c executes SET NX of client %d: no\n", 'A' + n, c + 1)
    fi
}

#ifdef MUTANT_RAISE_ANYWHERE
#define may_raise(c, n) true
#else
#define may_raise(c, n) (owner[n] == c + 1)
#endif

#ifdef MUTANT_RAISE_LOWERS
#define raised(c, n) fence(c)
#else
#define raised(c, n) larger(counter(n), fence(c))
#endif

inline raise_counter(c, n) {
    wire(c, n) = wire(c, n) - RAISE;
    if
    :: may_raise(c, n) ->
        counter(n) = raised(c, n);
        answer(c, n) = (state[c] == RAISING -> counter(n) : 0);
        printf("node %c raises for client %d: done\n", 'A' + n, c + 1)
    :: else -> printf("node %c raises for client %d: no\n", 'A' + n, c + 1)
    fi
}

inline vanish(n) {
    owner[n] = 0;
    printf("the key of node %c vanishes\n", 'A' + n)
}

/* ---- after every step ---- */

/*
 * Removes what has no effect any more: raising where the key is not the client's, and its number.
 */
inline tidy_wire(c, n) {
    if
    :: wire(c, n) == RAISE && !may_raise(c, n) -> wire(c, n) = 0
    :: else
    fi
}

inline tidy(c) {
    tidy_wire(c, 0);
    tidy_wire(c, 1);
    tidy_wire(c, 2);
    if
    :: state[c] != RAISING && ((wire(c, 0) | wire(c, 1) | wire(c, 2)) & RAISE) == 0 ->
        fence(c) = 0
    :: else
    fi
}

/* As in redlock.pml, worlds that differ only by a permutation are searched as one. */
#ifdef NAMED
inline put_all_in_order() {
    skip
}
#else
#define swap(x, y)                                                                                \
    v = x;                                                                                        \
    x = y;                                                                                        \
    y = v

/* j: 0 while equal, 1 when the first comes before the second, 2 when after it. */
#define compare(x, y) j = (j > 0 -> j : (x < y -> 1 : (x > y -> 2 : 0)))

inline put_nodes_in_order(a, b) {
    j = 0;
    compare(owner[a], owner[b]);
    compare(counter(a), counter(b));
    compare(wire(0, a), wire(0, b));
    compare(wire(1, a), wire(1, b));
    compare(answer(0, a), answer(0, b));
    compare(answer(1, a), answer(1, b));
    if
    :: j == 2 ->
        swap(owner[a], owner[b]);
        swap(counter(a), counter(b));
        swap(wire(0, a), wire(0, b));
        swap(wire(1, a), wire(1, b));
        swap(answer(0, a), answer(0, b));
        swap(answer(1, a), answer(1, b))
    :: else
    fi
}

inline swap_clients_at(n) {
    owner[n] = (owner[n] == 0 -> 0 : CLIENTS + 1 - owner[n]);
    swap(wire(0, n), wire(1, n));
    swap(answer(0, n), answer(1, n))
}

inline put_clients_in_order() {
    j = 0;
    compare(state[0], state[1]);
    compare(after[0], after[1]);
    compare(fence(0), fence(1));
    if
    :: j == 2 ->
        swap(state[0], state[1]);
        swap(after[0], after[1]);
        swap(fence(0), fence(1));
        swap_clients_at(0);
        swap_clients_at(1);
        swap_clients_at(2)
    :: else
    fi
}

inline put_all_in_order() {
    put_clients_in_order();
    put_nodes_in_order(0, 1);
    put_nodes_in_order(1, 2);
    put_nodes_in_order(0, 1)
}
#endif

/* Prints the world after each step of a trace; costs the search nothing. */
inline print_world() {
    printf("    A %d (%d)  B %d (%d)  C %d (%d)\n", owner[0], counter(0), owner[1], counter(1),
           owner[2], counter(2))
}

inline check() {
    tidy(0);
    tidy(1);
    rank_all();
#ifdef PROBE
    unseen = !(PROBE);
    assert(unseen);
#endif
    print_world();
    put_all_in_order();
    again = false;
    i = 0;
    j = 0;
    v = 0;
    fresh = 0;
    top = 0;
    seen = 0
}

/* ---- every step that the world can take ---- */

/* Any one of all reported fences is watched, or none. */
#define LOOKS(c, a, b)                                                                            \
    :: d_step { looks(c, a, b) && agree(c, a, b) -> hold(c, a, b) }                               \
    :: d_step { looks(c, a, b) && agree(c, a, b) && watched == 0 -> hold(c, a, b); watched = v }  \
    :: d_step { looks(c, a, b) && !agree(c, a, b) -> raise(c, a, b) }

#define WIRE(c, n)                                                                                \
    :: wire(c, n) & SET ->                                                                        \
        d_step { take(c, n) };                                                                    \
        select (fresh : fresh .. top);                                                            \
        skip;                                                                                     \
        d_step { record_taken(c, n) }                                                               \
    :: d_step { wire(c, n) == RAISE -> raise_counter(c, n) }

#define CLIENT(c)                                                                                 \
    :: d_step { state[c] == IDLE -> start(c) }                                                    \
    LOOKS(c, 0, 1) LOOKS(c, 0, 2) LOOKS(c, 1, 2)                                                  \
    :: d_step { is_acquiring(c) || state[c] == HELD -> end(c) }                                   \
    WIRE(c, 0) WIRE(c, 1) WIRE(c, 2)

#define NODE(n) :: d_step { owner[n] != 0 -> vanish(n) }

#ifdef ONCE
#define ALL_IS_OVER :: state[0] == OVER && state[1] == OVER -> skip
#else
#define ALL_IS_OVER
#endif

active proctype world() {
    do
    :: atomic {
        if
        CLIENT(0)
        CLIENT(1)
        NODE(0)
        NODE(1)
        NODE(2)
        ALL_IS_OVER
        fi;
        d_step { check() }
    }
    od
}
