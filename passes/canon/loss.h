/* Declarations that the files of pass loss share. */
#ifndef PASSES_CANON_LOSS_H
#define PASSES_CANON_LOSS_H

#include "passes/pass.h"

/* loss.c: unmark outputs that --output does not name; every glob must match
 * one. */
bool loss_keep_outputs(Pass *, Graph *);

/* loss_spec.c: settings of losses.  A kind of loss takes a set of them, as bits
 * 1 << key. */
enum loss_key { LOSS_AXIS, LOSS_IGNORE, LOSS_SMOOTHING, LOSS_WEIGHTS,
                LOSS_POS_WEIGHT, LOSS_DELTA, LOSS_REDUCTION, LOSS_KEYS };

struct loss_spec {
	const char *output;             /* "": not given */
	double number[LOSS_KEYS];       /* values of numeric settings */
	const float *weight;            /* in the graph's memory; NULL: none */
	int nweight;
	bool sum;                       /* sum instead of mean */
};

/* The output of that name, in the graph or the file; 0: none. */
ValId loss_find_output(const Graph *, const char *name);
/* List the outputs with their shapes, as further lines of an error. */
void loss_list_outputs(Pass *, const Graph *);
/* Parse KIND[:OUTPUT][,KEY=VALUE]... of a known kind; false after a
 * diagnostic. */
bool loss_parse_spec(Pass *, const Graph *, const char *kind, unsigned keys,
                     const char *text, struct loss_spec *);

/* ---- loss_added.c ---- */

/* A loss to add to a graph. */
struct loss_builder {
	Pass *p;
	Graph *g;
	const struct loss_kind *kind;
	struct loss_spec spec;
	ValId x;                        /* the output */
	NodeId like;
};

/* One kind of loss. */
struct loss_kind {
	const char *name;
	const char *default_output;     /* the output's name, if several fit */
	int min_rank;
	unsigned keys;                  /* K() of accepted settings */
	const char *applied;            /* activation in the formula; NULL */
	ValId (*make)(struct loss_builder *);
};

extern const struct loss_kind loss_kinds[];
extern const size_t loss_nkind;

#endif
