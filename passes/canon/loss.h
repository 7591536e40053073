/* Declarations that the files of pass loss share. */
#ifndef PASSES_CANON_LOSS_H
#define PASSES_CANON_LOSS_H

#include "passes/pass.h"

/* loss.c: 0: no output has that name, here or in the file. */
ValId loss_find_output(const Graph *, const char *name);
/* The outputs with their shapes, as further lines of an error. */
void loss_list_outputs(Pass *, const Graph *);
/* Says that there is none of that name; 0. */
ValId loss_no_output(Pass *, const Graph *, const char *name);

/* Unmark outputs that are not wanted; every glob must match one. */
bool loss_keep_outputs(Pass *, Graph *);

/* loss_spec.c: settings of losses; which of them a kind of loss takes is a set
 * of 1 << key. */
enum loss_key { LOSS_AXIS, LOSS_IGNORE, LOSS_SMOOTHING, LOSS_WEIGHTS,
                LOSS_POS_WEIGHT, LOSS_DELTA, LOSS_REDUCTION, LOSS_KEYS };

struct loss_spec {
	const char *output;             /* "": not said */
	double number[LOSS_KEYS];       /* of those that are one */
	const float *weight;            /* in the graph's memory; NULL: none */
	int nweight;
	bool sum;                       /* no mean */
};

/* Reads KIND[:OUTPUT][,KEY=VALUE]..., of which the kind is known; false after
 * a diagnostic. */
bool loss_parse_spec(Pass *, const Graph *, const char *kind, unsigned keys,
                     const char *text, struct loss_spec *);

/* loss_added.c: whether this asks for a loss that the graph has not got. */
bool loss_is_kind(const char *text);
/* KIND[:OUTPUT][,KEY=VALUE]...: the loss, a scalar; 0 after a diagnostic. */
ValId loss_add(Pass *, Graph *, const char *text);

#endif
