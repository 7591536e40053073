/* The two libraries of --against: opening, stepping and reading them. */
#ifndef RUNTIME_CKRUN_SIDES_H
#define RUNTIME_CKRUN_SIDES_H

#include "runtime/ckrun/differ.h"
#include "runtime/ckrun/start.h"

struct compared_side {
	const char *so;
	ckr_ctx *m;
	struct data data;
	double loss;                    /* of the last step */
	char *path;                     /* where its gradients go */
	struct array_file grads;        /* fd -1: there are none */
};

struct sides {
	struct compared_side s[2];
	struct array_file nudged;       /* gradients of the second, with every
	                                 * parameter one unit in the last
	                                 * place off; fd -1: there are none */
	char folder[200];               /* of the gradients; "": none yet */
	struct err err;
};

/* Both with the same data and seed, and the second with the parameters of the
 * first.  After a failure too there is something to close. */
ckr_status sides_open(struct sides *, const struct ckrun_options *);
void sides_close(struct sides *);
ckr_status sides_step(struct sides *, const struct ckr_hyper *);

bool sides_is_weight(const struct ckr_info *);
/* The weight of this name and shape. */
bool sides_find(ckr_ctx *, const struct ckr_info *of, struct ckr_info *found);
/* A weight's elements, to be freed; NULL: no memory. */
char *sides_get(ckr_ctx *, const struct ckr_info *);

/* Gradients come by way of files: called before and after the step whose they
 * are.  That a library has none is no failure. */
ckr_status sides_want_grads(struct sides *);
ckr_status sides_read_grads(struct sides *);
/* The gradient of the second's nudged parameters, if there is one. */
bool sides_nudged(const struct sides *, const char *name, int rank,
                  const int64_t *dim, struct elements *g);
/* Both gradients of that name and shape. */
bool sides_grads(const struct sides *, const char *name, int rank,
                 const int64_t *dim, struct elements g[2]);

#endif
