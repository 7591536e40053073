/* Room codegen: a planned graph becomes C, C becomes a shared library.
 *
 * in      placed graphs with their plans, options
 * out     a library, its weights, or sources in a folder
 * must not know ONNX and passes
 */
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include <signal.h>

#include "codegen/machine.h"
#include "ir/ir.h"
#include "ir/plan.h"

/* A place in the ONNX template from which a trained value was cut. */
struct codegen_hole {
	uint64_t at;                    /* position in the template */
	ValId val;                      /* parameter or buffer to put there */
	DType dt;                       /* its type in the file */
};

/* Low-rank weights beside a weight, as the ABI has them. */
struct codegen_adapter {
	ValId weight, a, b;
	double scale;
	bool transposed;
};

/* What a library is compiled from: the model's file, the options. */
struct codegen_origin {
	const char *model, *options;    /* NULL: not recorded */
};

struct codegen_options {
	const struct machine *machine;  /* NULL: the first one */
	const char *compiler;           /* command with arguments; NULL: the
	                                 * machine's default */
	const char *arch;               /* architecture; NULL: likewise */
	const char *out_so;             /* written by rename */
	const char *weights;            /* safetensors file of parameters, also
	                                 * written; NULL: none */
	struct codegen_origin origin;   /* recorded beside the weights */
	const char *training;           /* options that decide what is trained;
	                                 * NULL: unknown */
	const volatile sig_atomic_t *stop;      /* set: stop; NULL: never */
	const char *emit_dir;           /* folder for the sources; NULL: none */
	int threads;                    /* threads that workspace is for */
	int64_t grad_accum;             /* micro-batches per step; 0 means 1 */
	bool werror;                    /* -Wall -Wextra -Werror (tests) */
	const unsigned char *onnx_template;     /* NULL: not exportable */
	size_t onnx_bytes;
	bool onnx_trains;               /* has nodes in training form */
	int nhole;
	const struct codegen_hole *hole;
	int nadapter;
	const struct codegen_adapter *adapter;
};

/* A stage of a pipeline: its part of the training step. */
struct codegen_stage {
	const Graph *g;
	const Plan *plan;
	const struct turn *turn;
	int nturn;
	const Graph *second;            /* of some micro-batches, beside the
	                                 * same weights; NULL: of none */
	const Plan *second_plan;
	const bool *has_second;         /* by slot */
	int slots;
	const Graph *forward;           /* its part of evaluation; NULL: none */
	const Plan *forward_plan;
};

/* The schedules that a library holds, each a placed graph and its plan. */
struct codegen_schedules {
	const Graph *g;                 /* the training step */
	const Plan *plan;               /* NULL: there are stages */
	const struct codegen_stage *stage; /* [nstage]; g has their weights */
	int nstage;
	int nmicro;                     /* micro-batches of a step */
	int nrank;                      /* ranks of the pipeline: rank r has
	                                 * the stages r, nrank + r... */
	const Graph *reference;         /* the same with all activations kept,
	                                 * for ckrun --check; NULL: g */
	const Plan *reference_plan;
	const Graph *forward;           /* evaluation, in g's arena, with g's
	                                 * weights; NULL: none */
	const Plan *forward_plan;
	const struct loss_formula *formula;     /* a data set's loss; NULL:
	                                         * there is no loss */
};

/* Whether the schedules and their weights can be written: all checks of
 * codegen_library, without those of the compiler and the file system. */
bool codegen_check(const struct codegen_schedules *,
                   const struct codegen_options *, Diag *);

/* Compile the schedules into a library.  Nothing is left behind on failure,
 * which the diagnostic explains. */
bool codegen_library(const struct codegen_schedules *,
                     const struct codegen_options *, Diag *);

/* Write parameters and buffers by name into a safetensors file, and where they
 * are from into its metadata. */
bool codegen_weights(const Graph *g, const struct codegen_origin *,
                     const char *path, Diag *);

/* What the file at path says of its origin; no model if there is no file.
 * False if codegen_weights did not write it. */
bool codegen_weights_origin(const char *path, struct codegen_origin *,
                            Arena *);

#endif
