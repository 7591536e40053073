/* Verbs of ckc that need no model. */
#ifndef FRONTEND_VERBS_H
#define FRONTEND_VERBS_H

#include "frontend/opts.h"

/* ckc plan GRAPH.json: keep or recompute for a bare graph of costs. */
bool verb_plan(const struct cli *, Arena *, Diag *);
/* ckc pack BUFFERS.csv: offsets for buffers with known lifetimes. */
bool verb_pack(const struct cli *, Arena *, Diag *);

#endif
