/* One graph of many small cases: built, laid out plainly, compiled, run and
 * compared with the reference interpreter.
 */
#ifndef TESTS_CODEGEN_HARNESS_H
#define TESTS_CODEGEN_HARNESS_H

#include "codegen/codegen.h"
#include "ir/ir.h"
#include "runtime/ckr_abi.h"
#include "tests/ref/interp.h"

struct setup {
	Graph *g;
	const struct machine *machine;  /* compiled for */
	struct interp *reference;       /* its results; NULL: not asked yet */
	Diag *diag;
	Arena *arena;
	const char *name;               /* of the case being built */
	const char **name_of;           /* per node */
	double *tolerance;              /* per node; 0: the usual */
	double next_tolerance;
	DType real;                     /* of floats, where cases are repeated */
	void **contents;                /* per V_INPUT, V_PARAM, V_STATE: as it
	                                 * lies in memory, packed row-major */
	size_t cap;
	uint64_t random;
};

void setup_open(struct setup *, const char *name);
void setup_close(struct setup *);
/* Begin a case: what follows is reported under this name. */
void case_begin(struct setup *, const char *name);

/* A filled input: uniform in lo..hi; integers from lo to hi - 1. */
ValId given(struct setup *, DType, Shape, double lo, double hi);
/* The same as a parameter or an optimizer state. */
ValId given_as(struct setup *, ValKind, DType, Shape, double lo, double hi);
/* Integers as listed. */
ValId listed(struct setup *, DType, Shape, const int64_t *);
/* A filled input of the floats that cases are repeated with. */
ValId floats(struct setup *, Shape);
/* Append a node and infer its shapes; fails the program on error. */
Node *apply(struct setup *, Op, const Attr *, int nin, const ValId *in);
#define APPLY(t, op, attr, ...) \
	apply(t, op, attr, (int)(sizeof((ValId[]){ __VA_ARGS__ }) / \
	      sizeof(ValId)), (const ValId[]){ __VA_ARGS__ })
/* A view of x: reshape, transpose, slice or expand carried out by strides. */
ValId view(struct setup *, Op, const Attr *, ValId x);
/* Lay the output of a slice out as a view of its input. */
void slice_view(struct setup *, const Node *, Shape);
/* Lay v out densely with its dims in this order in memory. */
void permuted(struct setup *, ValId v, const int *order);
/* Output `slot` of n is written over the value `owner`. */
void in_place(struct setup *, Node *n, int slot, ValId owner);
Attr list_attr(Op, int nlist, const int64_t *list);

/* The first n of three. */
static inline IntList
list(int n, int64_t a, int64_t b, int64_t c)
{
	return (IntList){ n, { a, b, c } };
}

/* Lay out what is left, place everything, make the plan. */
Plan *setup_plan(struct setup *, int threads);

struct run {
	void *handle;
	const struct ckr_library *lib;
	unsigned char *arena, *resident;
	unsigned char *ready;           /* of lib->blocked */
	struct ckr_env env, device;     /* device: as kernels of a GPU see it */
};

/* Compile; false after a diagnostic. */
bool setup_compile(struct setup *, const Plan *, const char *cc,
                   const char *so, const char *emit_dir, int threads);
bool run_open(struct run *, const char *so);
/* Put contents in place and walk the schedule. */
void run_once(struct run *, const struct setup *, int threads);
void run_close(struct run *);
/* Whether there is a library of convolutions; there is one at first. */
void run_convs(struct run *, bool on);
/* Whether the processor multiplies bf16; it does not at first. */
void run_units(struct run *, bool on);
/* Whether that matters to a library. */
bool run_has_bf16(const struct run *);
/* Compare all values with the interpreter's; returns how many differ. */
int run_compare(const struct run *, struct setup *);
/* Address of a tensor by index. */
void *run_tensor(const struct run *, int64_t index);
struct ckr_env env_usual(void);

#endif
