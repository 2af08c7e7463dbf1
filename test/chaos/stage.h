/* The processes of one run: masters, clients, and what is between them. */
#ifndef REDLOCK_CHAOS_STAGE_H
#define REDLOCK_CHAOS_STAGE_H

#include "board.h"
#include "folder.h"
#include "hosts.h"
#include "masters.h"
#include "options.h"
#include "proxy.h"

struct stage_client {
    pid_t pid;
    uint32_t life;
    int log;
};

struct stage {
    pid_t owner; /* 0: finished; a client must not end the stage */
    const struct options *options;
    char folder[FOLDER_SIZE]; /* of the logs, and of the masters' clocks; "": none yet */
    struct board *board;
    struct masters *masters;
    struct fault_proxy proxy; /* without --hosts */
    struct hosts hosts;       /* with */
    const char *host_names[MASTERS];
    char fake_library[128]; /* libfaketime; "": the clocks are the system's */
    struct stage_client clients[MAX_CLIENTS];
    double clock_offsets_s[MASTERS];
};

/* Other than 0: it said why not; stage_finish all the same. */
int stage_start(struct stage *stage, const struct options *options);

/* Whether all clients, and the proxy, are alive; says who is not. */
bool stage_is_alive(struct stage *stage);

void stage_kill_client(struct stage *stage, uint32_t client);
int stage_start_client(struct stage *stage, uint32_t client);

/* Sets how far the wall clock of a master is ahead of the system's. */
void stage_set_clock(struct stage *stage, uint32_t master, double offset_s);

/* Asks the clients to end, and waits. Other than 0: one did not, or did not end well. */
int stage_end_clients(struct stage *stage);

/* Ends every process that is left, and removes the folder unless it is to be kept; once. */
void stage_finish(struct stage *stage);

#endif
