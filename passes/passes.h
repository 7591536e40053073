/* The pipeline: the table of all passes and its runner.
 *
 * in      a graph at any stage, the options
 * out     the graph after the passes named, and what they left in struct Pass
 * unaware of files, ONNX and code
 */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "passes/pass.h"

struct pass_info {
	const char *name;
	PassFn *run;
	uint32_t needs, gives, breaks;
	const char *help;
};

/* The pipeline in order; the last entry has name NULL. */
extern const struct pass_info pass_table[];

struct dump_request {
	const char *passes;             /* "a,b" or "all"; NULL: none */
	const char *dir;                /* NN-pass.ck go here; NULL: stdout */
};

/* Run the passes named in `only` ("a,b" in that order, or "none"), or the
 * whole table if NULL, up to and including stop_after (NULL: to the end).
 * False after a diagnostic, which "interrupted" is one of. */
bool pass_run(Pass *, Graph *, const char *only, const char *stop_after,
              const struct dump_request *);

#endif
