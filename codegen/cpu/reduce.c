/* Calls of the kernels that reduce floats. */
#include "codegen/cpu/cpu.h"
#include "codegen/rules/reduce.h"

bool
cpu_reduce(struct emit *e, const Node *n, const struct reduced *r)
{
	const char *dt = tables_dtype(emit_in(e, n, 0)->dt);
	long long divisor = n->op == OP_REDUCE_MEAN ? r->lead * r->n : 1;

	emit_include(e, "reduce");
	if (r->lead > 1)
		out_line(e->out, "ckr_reduce_planes(%s, p[1], p[0], %s, %lld, "
		         "%lld, %lld, %lld.0f, env);", reduce_kernel(n->op), dt,
		         (long long)r->lead, (long long)r->outer,
		         (long long)r->n, divisor);
	else if (r->inner == 1)
		out_line(e->out, "ckr_reduce_rows(%s, p[1], p[0], %s, %lld, "
		         "%lld, %lld.0f, env);", reduce_kernel(n->op), dt,
		         (long long)r->outer, (long long)r->n, divisor);
	else
		out_line(e->out, "ckr_reduce_columns(%s, p[1], p[0], %s, "
		         "%lld, %lld, %lld, %lld.0f, env);",
		         reduce_kernel(n->op), dt, (long long)r->outer,
		         (long long)r->n, (long long)r->inner, divisor);
	return true;
}
