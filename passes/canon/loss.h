/* Declarations that the files of pass loss share. */
#ifndef PASSES_CANON_LOSS_H
#define PASSES_CANON_LOSS_H

#include "passes/pass.h"

/* loss.c: the output of that name, in the graph or the file; 0: none. */
ValId loss_find_output(const Graph *, const char *name);
/* List the outputs with their shapes, as further lines of an error. */
void loss_list_outputs(Pass *, const Graph *);
/* Report that no output has that name; returns 0. */
ValId loss_no_output(Pass *, const Graph *, const char *name);

/* Unmark outputs that --output does not name; every glob must match one. */
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

/* Parse KIND[:OUTPUT][,KEY=VALUE]... of a known kind; false after a
 * diagnostic. */
bool loss_parse_spec(Pass *, const Graph *, const char *kind, unsigned keys,
                     const char *text, struct loss_spec *);

/* loss_added.c: whether the text begins with a kind of loss to add. */
bool loss_is_kind(const char *text);
/* Add the loss KIND[:OUTPUT][,KEY=VALUE]..., a scalar; 0 after a diagnostic. */
ValId loss_add(Pass *, Graph *, const char *text);

#endif
