/* Room api: the functions of ckr.h.
 *
 * in      calls of users
 * out     the same of the rooms below, once their state allows it
 * must not know   how they do it
 */
#ifndef RUNTIME_API_CONTEXT_H
#define RUNTIME_API_CONTEXT_H

#include "runtime/evaluate/evaluate.h"
#include "runtime/files/files.h"
#include "runtime/library/library.h"
#include "runtime/measure/measure.h"
#include "runtime/stepping/stepping.h"
#include "runtime/world/world.h"

struct ckr_ctx {
	struct err err;
	struct library library;
	struct world world;
	struct stepping *steps;         /* NULL, as those below: not open */
	struct files *files;
	struct measure *measure;
	struct evaluation *evaluation;
	ckr_feed_fn *feed;
	void *feed_user;
	ckr_ctx *with;                  /* shares its model; NULL: it has one */
	uint32_t users;                 /* not yet closed: itself and those that
	                                 * share its model */
};

/* CKR_EARG unless a model is open and no step is under way. */
ckr_status need_quiet(ckr_ctx *);
/* The same, and CKR_EARG while moving averages are in place of the
 * parameters. */
ckr_status need_parameters(ckr_ctx *);

#endif
