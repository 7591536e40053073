/* Code generation: a planned graph becomes C, C becomes a shared library. */
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include <signal.h>

#include "ir/ir.h"
#include "ir/plan.h"

/* A trained value's place in the ONNX template. */
struct codegen_hole {
	uint64_t at;                    /* position in the template */
	ValId val;                      /* parameter or buffer that belongs
	                                 * here */
	DType dt;                       /* written so */
};

/* Low-rank weights beside a weight, as the ABI has them. */
struct codegen_adapter {
	ValId weight, a, b;
	double scale;
	bool transposed;
};

struct codegen_options {
	const struct target *target;    /* NULL: the CPU */
	const char *out_so;             /* written by rename */
	const char *weights;            /* safetensors of parameters, written
	                                 * with it; NULL: not wanted */
	const volatile sig_atomic_t *stop;      /* set: give up; NULL: never */
	const char *emit_dir;          /* keep the sources here; NULL: do not */
	const char *cc;               /* command, split on blanks; NULL: "cc" */
	const char *march;              /* for -march=; NULL: "native" */
	const char *nvcc;               /* as cc, for GPUs; NULL: "nvcc" */
	const char *arch;               /* "sm_90", of GPUs; NULL: the CPU */
	int threads;                    /* for which workspace was planned */
	int64_t grad_accum;             /* micro-batches per step; 0 means 1 */
	bool werror;                    /* -Wall -Wextra -Werror (tests) */
	const unsigned char *onnx_template;     /* NULL: not exportable */
	size_t onnx_bytes;
	int nhole;
	const struct codegen_hole *hole;
	int nadapter;
	const struct codegen_adapter *adapter;
};

/* The schedules that a library holds, each a placed graph and its plan. */
struct codegen_schedules {
	const Graph *g;                 /* what steps do */
	const Plan *plan;
	const Graph *reference;         /* the same, everything kept, for the
	                                 * run time's check; NULL: g */
	const Plan *reference_plan;
	const Graph *forward;           /* what evaluates, in g's arena, with
	                                 * g's weights; NULL: nothing does */
	const Plan *forward_plan;
	const struct total *total;      /* formula of a data set's loss;
	                                 * NULL: there is no loss */
};

/* Whether there is code for the schedules, and a file for their weights: all
 * that codegen_library refuses but for what the machine lacks. */
bool codegen_check(const struct codegen_schedules *,
                   const struct codegen_options *, Diag *);

/* Compile the schedules into a library.  Nothing is left behind on failure,
 * which the diagnostic explains. */
bool codegen_library(const struct codegen_schedules *,
                     const struct codegen_options *, Diag *);

/* Write parameters and buffers by name into a safetensors file. */
bool codegen_weights(const Graph *g, const char *path, Diag *);

/* False if there is a file at path that codegen_weights did not write. */
bool codegen_may_replace(const char *path);

#endif
