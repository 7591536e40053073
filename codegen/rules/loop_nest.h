/* Parts of a loop nest that all targets share: merged dims, declarations of
 * operands, the loop body.
 */
#ifndef CODEGEN_RULES_LOOP_NEST_H
#define CODEGEN_RULES_LOOP_NEST_H

#include "codegen/rules/emit.h"

struct nest_dims {
	int n;                          /* at least 1 */
	int64_t extent[MAX_RANK];
	int64_t linear[MAX_RANK];       /* strides of random words */
};

/* Expressions for a nest's values. */
struct nest_names {
	const char **in;                /* input k, in the computed type */
	const char **micro;             /* result of scalar op i */
	DType *in_dt;
	const char **from;              /* lvalue of input k at a point; NULL:
	                                 * read before the loops */
	const char **to;                /* lvalue of output k */
};

/* Merge dims that all operands walk as one and drop dims of extent 1; changes
 * the operands' strides.  Random words of neighbours in the last dim stay
 * neighbours. */
struct nest_dims nest_merge(const struct loop_nest *);
/* Whether the operand is one element for all points. */
bool nest_is_one(const struct nest_operand *, const struct nest_dims *);
/* Declare first elements, const T *pK and T *qK; read inputs that are one
 * element. */
struct nest_names nest_open(struct emit *, const struct loop_nest *,
                            const struct nest_dims *);
/* Declare xK: input k, read from an lvalue. */
void nest_read(struct emit *, int k, const struct nest_operand *,
               const char *from);
/* " + i0 * 768 + j0 * 2": the offset in loops over the first dims; blocked: and
 * of the block at j0 of the last dim. */
const char *nest_offset(struct emit *, const int64_t *stride,
                        const struct nest_dims *, bool blocked);
/* "a3[j * 2]": element j of the last dim of operand k, whose pointer is name K.
 */
const char *nest_element(struct emit *, const char *name, int k,
                         int64_t stride);
/* A point: read, compute, write. */
bool nest_body(struct emit *, const struct loop_nest *, struct nest_names *);

#endif
