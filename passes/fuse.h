/* The parts of pass fuse, each false after a diagnostic; fuse_loops.c is its
 * entry. */
#ifndef PASSES_FUSE_H
#define PASSES_FUSE_H

#include "passes/passes.h"

/* fuse_ends.c: rewrites of matrix products and attention. */
bool fuse_classifier(Pass *, Graph *);
bool fuse_packed(Pass *, Graph *);
bool fuse_accumulators(Pass *, Graph *);

/* fuse_turn.c: loops that write transposed. */
bool fuse_turned(Pass *, Graph *);

#endif
