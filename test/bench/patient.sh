#!/bin/sh
# Runs $REDLOCK_BENCH; its masters have 5 s to answer: a master that gets no core for the usual
# timeout, beside other tests, would count as an error. The floors have no timeout.
case " $* " in
*' --floor '*) exec "$REDLOCK_BENCH" "$@" ;;
*) exec "$REDLOCK_BENCH" --node-timeout 5000 "$@" ;;
esac
