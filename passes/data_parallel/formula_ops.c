/* Ops that formulas of sums over samples are made of. */
#include "passes/data_parallel/data_parallel.h"

static const struct {
	Op op;
	enum formula_op as;
} scalar_ops[] = {
	{ OP_ADD, FORMULA_ADD }, { OP_SUB, FORMULA_SUB },
	{ OP_MUL, FORMULA_MUL }, { OP_DIV, FORMULA_DIV },
	{ OP_MIN, FORMULA_MIN }, { OP_MAX, FORMULA_MAX },
	{ OP_POW, FORMULA_POW }, { OP_NEG, FORMULA_NEG },
	{ OP_ABS, FORMULA_ABS },
	{ OP_RECIP, FORMULA_RECIP }, { OP_SQRT, FORMULA_SQRT },
	{ OP_EXP, FORMULA_EXP }, { OP_LOG, FORMULA_LOG },
	/* of a scalar the scalar itself */
	{ OP_CAST, FORMULA_OPS }, { OP_RESHAPE, FORMULA_OPS },
	{ OP_ALL_REDUCE, FORMULA_OPS },
};
bool
formula_op_of(Op op, enum formula_op *as)
{
	for (size_t i = 0; i < sizeof scalar_ops / sizeof *scalar_ops; i++)
		if (scalar_ops[i].op == op) {
			*as = scalar_ops[i].as;
			return true;
		}
	return false;
}
