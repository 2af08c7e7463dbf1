/* The processes of one run: masters, clients, and the proxy or hosts between them. */
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
    int actions; /* -1: none */
};

struct stage {
    pid_t owner; /* 0: finished; a client must not end the stage */
    const struct options *options;
    char folder[FOLDER_SIZE]; /* folder of the logs, and of the masters' clocks; "": none yet */
    struct board *board;
    struct masters *masters;
    struct fault_proxy proxy; /* without --hosts */
    struct hosts hosts;       /* with --hosts */
    const char *host_names[MASTERS];
    char fake_library[128]; /* path of libfaketime; "": masters have the system's clock */
    struct stage_client clients[MAX_CLIENTS];
    double clock_offsets_s[MASTERS];
    int clock_log; /* samples of the masters' clock, for the actions; -1: none */
};

/*
 * Starts all processes. Returns 0; nonzero after a message. stage_finish must be called in either
 * case.
 */
int stage_start(struct stage *stage, const struct options *options);

/* Returns whether all clients, and the proxy, are alive; names the dead ones on stderr. */
bool stage_is_alive(struct stage *stage);

void stage_kill_client(struct stage *stage, uint32_t client);
int stage_start_client(struct stage *stage, uint32_t client);

/* Sets the lead of a master's wall clock over the system's. */
void stage_set_clock(struct stage *stage, uint32_t master, double offset_s);

/* Logs a sample of the masters' clock, if actions are wanted. */
void stage_sample_clock(const struct stage *stage);

/* Makes the clients end, and waits. Returns 0; nonzero if one did not end, or failed. */
int stage_end_clients(struct stage *stage);

/*
 * Ends all remaining processes, and removes the folder unless it is to be kept. Has an effect once.
 */
void stage_finish(struct stage *stage);

#endif
