/* The user's options of the importer. */
#ifndef FRONTEND_PARAMS_IMPORT_OPTIONS_H
#define FRONTEND_PARAMS_IMPORT_OPTIONS_H

#include "runtime/support/glob.h"
#include "ir/ir.h"

struct import_const {
	const char *input, *file;
};

/* How BatchNormalization is trained. */
enum batchnorm {
	BATCHNORM_GRAPH,        /* in the form that the graph has */
	BATCHNORM_BATCH,        /* use batch statistics, update running ones */
	BATCHNORM_RUNNING       /* use running statistics, never update them */
};

/* Outcome of a compile with the same options. */
enum outcome { OUTCOME_UNKNOWN, OUTCOME_ACCEPTED, OUTCOME_UNBOUND,
               OUTCOME_REFUSED };

/* Bytes that a step owns after a compile with the same options. */
struct step_bytes {
	int64_t all;            /* total; 0: unknown */
	int64_t grad;           /* gradients; -1: unknown */
	int64_t state;          /* optimizer states; -1: unknown */
	const char *rule;       /* optimizer's name; NULL: no training */
	bool early;             /* gradients are freed once applied */
	bool recomputes;        /* the plan recomputes activations */
};

struct import_options {
	int nwish, nconst;
	const struct glob_wish *wish;   /* --train, --freeze; the last match
	                                 * counts */
	struct name_list param;         /* --param: names, no patterns */
	const struct import_const *constant;
	bool untie;             /* clone accidentally tied parameters */
	int nbatchnorm;
	const struct glob_wish *batchnorm;      /* wanted: batch statistics;
	                                         * the last match counts */
	bool no_dropout;        /* turn dropout off */
	bool quiet;             /* no export diagnostics */
	bool shapes_do;         /* external data may be absent, with a
	                         * warning; its values are then unknown */
	bool all_outputs;       /* no loss: weights that reach any output are
	                         * parameters */
	const char *loss;       /* --loss; NULL: derived from the outputs */
	/* for onnx_inspect */
	bool json;              /* report as JSON */
	int nnote;              /* number of further warnings */
	const char *const *note;
	struct step_bytes step;
	enum outcome outcome;
	const char *unbound;    /* options to bind the remaining extents */
	const char *refusal;    /* messages of a refused compile */
	/* bind and fold a graph; NULL: control flow depends on the file */
	bool (*fold)(void *of, Graph *, Diag *);
	void *fold_of;
};

#endif
