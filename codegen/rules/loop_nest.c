/* Loop nests: merged dims, operands, loop body. */
#include "codegen/rules/loop_nest.h"

static struct nest_operand *
operand_at(const struct loop_nest *nest, int i)
{
	return i < nest->nin ? &nest->in[i] : &nest->out[i - nest->nin];
}

struct nest_dims
nest_merge(const struct loop_nest *nest)
{
	struct nest_dims d = { 0 };
	int64_t linear[MAX_RANK];
	int nop = nest->nin + nest->nout;

	random_strides(nest, linear);
	for (int i = 0; i < nest->shape.rank; i++) {
		int64_t n = nest->shape.dim[i];
		bool fits = d.n > 0;

		if (n == 1)
			continue;
		for (int k = 0; k < nop && fits; k++) {
			const int64_t *s = operand_at(nest, k)->stride;

			fits = s[d.n - 1] == s[i] * n;
		}
		fits = fits && d.linear[d.n - 1] == linear[i] * n;
		if (!fits)
			d.n++;
		d.extent[d.n - 1] = fits ? d.extent[d.n - 1] * n : n;
		d.linear[d.n - 1] = linear[i];
		for (int k = 0; k < nop; k++)
			operand_at(nest, k)->stride[d.n - 1] =
				operand_at(nest, k)->stride[i];
	}
	/* words are drawn for neighbours in the innermost dim */
	if (d.n == 0 || d.linear[d.n - 1] != 1) {
		d.extent[d.n] = d.linear[d.n] = 1;
		for (int k = 0; k < nop; k++)
			operand_at(nest, k)->stride[d.n] = 0;
		d.n++;
	}
	return d;
}

bool
nest_is_one(const struct nest_operand *op, const struct nest_dims *d)
{
	for (int i = 0; i < d->n; i++)
		if (op->stride[i])
			return false;
	return true;
}

const char *
nest_offset(struct emit *e, const int64_t *stride, const struct nest_dims *d,
            bool blocked)
{
	struct out o = { .arena = e->arena };
	int inner = d->n - 1;

	out_put(&o, "%s", "");
	for (int i = 0; i < inner + blocked; i++) {
		if (stride[i] == 0)
			continue;
		if (i == inner)
			out_put(&o, " + j0");
		else
			out_put(&o, " + i%d", i);
		if (stride[i] != 1)
			out_put(&o, " * %lld", (long long)stride[i]);
	}
	return o.s ? o.s : "";
}

const char *
nest_element(struct emit *e, const char *name, int k, int64_t stride)
{
	if (stride == 1)
		return arena_printf(e->arena, "%s%d[j]", name, k);
	if (stride == 0)
		return arena_printf(e->arena, "%s%d[0]", name, k);
	return arena_printf(e->arena, "%s%d[j * %lld]", name, k,
	                    (long long)stride);
}

/* ---- operands ---- */

/* The first element of an operand, as NAMEk. */
static void
emit_operand(struct emit *e, const char *quality, char name, int k,
             const struct nest_operand *op)
{
	const char *type = emit_ctype(op->dt), *more = "";

	if (op->start)
		more = arena_printf(e->arena, " + %lld", (long long)op->start);
	if (op->step)
		more = arena_printf(e->arena, "%s + r * %lld", more,
		                    (long long)op->step);
	out_line(e->out, "%s%s *%c%d = (%s%s *)p[%d%s]%s;", quality, type,
	         name, k, quality, type, op->arg, op->many ? " + r" : "", more);
}

void
nest_read(struct emit *e, int k, const struct nest_operand *op,
          const char *from)
{
	out_line(e->out, "const %s x%d = %s;", ew_type(op->dt), k,
	         ew_load(e, op->dt, from));
}

static struct nest_names
names_new(const struct emit *e, const struct loop_nest *nest)
{
	size_t nin = (size_t)nest->nin + 1, nout = (size_t)nest->nout + 1;
	size_t nmicro = nest->body ? (size_t)nest->body->nop + 1 : 1;

	return (struct nest_names){
		.in = arena_array(e->arena, nin, sizeof(char *)),
		.micro = arena_array(e->arena, nmicro, sizeof(char *)),
		.in_dt = arena_array(e->arena, nin, sizeof(DType)),
		.from = arena_array(e->arena, nin, sizeof(char *)),
		.to = arena_array(e->arena, nout, sizeof(char *)),
	};
}

struct nest_names
nest_open(struct emit *e, const struct loop_nest *nest,
          const struct nest_dims *d)
{
	struct nest_names s = names_new(e, nest);

	for (int k = 0; k < nest->nin; k++) {
		struct nest_operand *op = &nest->in[k];

		s.in_dt[k] = op->dt;
		s.in[k] = op->scalar ? nest_literal(e, op)
		                     : arena_printf(e->arena, "x%d", k);
		if (op->scalar)
			continue;
		emit_operand(e, "const ", 'p', k, op);
		if (nest_is_one(op, d))
			nest_read(e, k, op, arena_printf(e->arena, "p%d[0]",
			                                 k));
	}
	for (int k = 0; k < nest->nout; k++)
		emit_operand(e, "", 'q', k, &nest->out[k]);
	return s;
}

/* ---- the body ---- */

static const char *
micro_argument(const struct loop_nest *nest, const struct nest_names *s, int a,
               DType *dt)
{
	*dt = a >= 0 ? s->in_dt[a] : nest->body->op[~a].dt;
	return a >= 0 ? s->in[a] : s->micro[~a];
}

static bool
emit_micro(struct emit *e, const struct loop_nest *nest, struct nest_names *s,
           int i)
{
	const struct scalar_op *m = &nest->body->op[i];
	const char *arg[3] = { NULL }, *text;
	DType from[3] = { DT_NONE };
	const double *exponent = NULL;

	for (int a = 0; a < m->narg; a++)
		arg[a] = micro_argument(nest, s, m->arg[a], &from[a]);
	if (m->op == OP_POW && m->arg[1] >= 0 &&
	    nest->in[m->arg[1]].scalar)
		exponent = &nest->in[m->arg[1]].value;
	if (op_info[m->op].flags & F_RNG)
		text = ew_load(e, m->dt,
		               ew_store(e, m->dt,
		                        random_draw(e, m, i, arg[0])));
	else
		text = ew_expression(e, m, arg, from, exponent);
	if (!text)
		return false;
	s->micro[i] = arena_printf(e->arena, "t%d", i);
	out_line(e->out, "const %s t%d = %s;", ew_type(m->dt), i, text);
	return true;
}

bool
nest_body(struct emit *e, const struct loop_nest *nest, struct nest_names *s)
{
	for (int k = 0; k < nest->nin; k++)
		if (s->from[k])
			nest_read(e, k, &nest->in[k], s->from[k]);
	for (int i = 0; nest->body && i < nest->body->nop; i++)
		if (!emit_micro(e, nest, s, i))
			return false;
	for (int k = 0; k < nest->nout; k++) {
		DType dt = DT_NONE;
		int r = nest->body ? nest->body->result[k] : 0;
		const char *from = nest->body
			? micro_argument(nest, s, ~r, &dt) : s->in[0];

		out_line(e->out, "%s = %s;", s->to[k],
		         ew_store(e, nest->out[k].dt, from));
	}
	return true;
}
