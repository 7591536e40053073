/* The two libraries of --against: opening, stepping and reading them. */
#ifndef RUNTIME_CKRUN_SIDES_H
#define RUNTIME_CKRUN_SIDES_H

#include "runtime/ckrun/start.h"
#include "runtime/compare/compare.h"

struct compared_side {
	const char *so;
	ckr_ctx *m;
	struct data data;
	double loss;                    /* loss of the last step */
	char path[208];                 /* file for its gradients */
	struct array_file grads;        /* fd -1: there are none */
};

struct sides {
	struct compared_side s[2];
	struct array_file nudged;       /* gradients of the second side, with
	                                 * every parameter changed by one unit
	                                 * in the last place; fd -1: none */
	char folder[200];               /* folder of gradients; "": not yet */
	struct err err;
};

/* Open both with the same data and seed, the second with the first one's
 * parameters.  To be closed after a failure too. */
ckr_status sides_open(struct sides *, const struct ckrun_options *);
void sides_close(struct sides *);
ckr_status sides_step(struct sides *, const struct ckr_hyper *);

bool sides_is_weight(const struct ckr_info *);
/* The weight of this name and shape. */
bool sides_find(ckr_ctx *, const struct ckr_info *of, struct ckr_info *found);
/* A weight's elements, which the caller frees; NULL: no memory. */
char *sides_get(ckr_ctx *, const struct ckr_info *);

/* Write the gradients of the next step to files; read the files after it.  A
 * library without gradients is not a failure. */
ckr_status sides_want_grads(struct sides *);
ckr_status sides_read_grads(struct sides *);
/* The second side's gradient for nudged parameters; false: there is none. */
bool sides_nudged(const struct sides *, const char *name, int rank,
                  const int64_t *dim, struct elements *g);
/* Both gradients of that name and shape. */
bool sides_grads(const struct sides *, const char *name, int rank,
                 const int64_t *dim, struct elements g[2]);

#endif
