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
	BATCHNORM_GRAPH,        /* as the graph says */
	BATCHNORM_BATCH,        /* by the batch's statistics; running ones
	                         * follow */
	BATCHNORM_RUNNING       /* by the running statistics, which stay */
};

/* What a compile with the same options says of the file. */
enum outcome { OUTCOME_UNKNOWN, OUTCOME_ACCEPTED, OUTCOME_UNBOUND,
               OUTCOME_REFUSED };

/* What a compile with the same options makes a step own, in bytes. */
struct step_bytes {
	int64_t all;            /* 0: not known */
	int64_t grad;           /* of all that is trained; -1: not known */
	int64_t state;          /* the optimizer's; -1: not known */
	const char *rule;       /* the optimizer; NULL: nothing is trained */
	bool early;             /* each gradient is gone once it is applied */
	bool recomputes;
};

struct import_options {
	int nwish, nparam, nconst;
	const struct glob_wish *wish;   /* trained or not; the last that matches
	                                 * counts */
	const char *const *param;                       /* names */
	const struct import_const *constant;
	bool untie;             /* clone parameters tied by accident */
	enum batchnorm batchnorm;
	bool no_dropout;        /* the user wants none */
	bool quiet;             /* no export diagnostics */
	bool shapes_do;         /* external data may be absent: what would be
	                         * read from it is unknown, and said so */
	bool all_outputs;       /* weights that reach any output are parameters
	                         * (there is no loss) */
	const char *loss;       /* as --loss; NULL: found from the outputs */
	/* for onnx_inspect */
	bool json;              /* machine-readable */
	int nnote;              /* further warnings */
	const char *const *note;
	struct step_bytes step;
	enum outcome outcome;
	const char *unbound;    /* options that bind what is not bound yet */
	const char *refusal;    /* the messages of a compile that is refused */
	/* bind and fold a graph; NULL: control flow depends on the file */
	bool (*fold)(void *of, Graph *, Diag *);
	void *fold_of;
};

#endif
