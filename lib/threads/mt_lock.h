/*
 * The handle of a lock that all threads share. It has one reference of the application, until it is
 * released, and one of the library, from the request until the client no longer knows the lock.
 */
#ifndef REDLOCK_THREADS_MT_LOCK_H
#define REDLOCK_THREADS_MT_LOCK_H

#include "threads/mt.h"

/* The locks of a client whose on_lost is that of a handle are mirrored in their handles. */
extern const struct mirror mt_lock_mirror;

/* Ends what the library knows of the locks of a client that has closed. On the worker. */
void mt_lock_forget_all(struct redlock_mt *mt);

#endif
