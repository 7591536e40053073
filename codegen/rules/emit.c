/* Functions that all emit rules share. */
#include "codegen/rules/target_emitter.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- operands ---- */

const Val *
emit_in(const struct emit *e, const Node *n, int i)
{
	return i < n->nin && n->in[i] ? &e->g->val[n->in[i]] : NULL;
}

const Val *
emit_out(const struct emit *e, const Node *n, int i)
{
	return i < n->nout && n->out[i] ? &e->g->val[n->out[i]] : NULL;
}

const Val *
emit_val(const struct emit *e, const Node *n, int i)
{
	return i < n->nin ? emit_in(e, n, i) : emit_out(e, n, i - n->nin);
}

const char *
p_in(const struct emit *e, const Node *n, int i)
{
	const Val *v = emit_in(e, n, i);

	return v ? e->emitter->operand(e, v, i, true) : "NULL";
}

const char *
p_out(const struct emit *e, const Node *n, int i)
{
	const Val *v = emit_out(e, n, i);

	return v ? e->emitter->operand(e, v, n->nin + i, false) : "NULL";
}

void
emit_members(struct emit *e, const char *names, const int64_t *value)
{
	const char *line = "";

	for (size_t n; *names; names += n + (names[n] == ' ')) {
		n = strcspn(names, " ");
		line = arena_printf(e->arena, "%s%s.%.*s = %lld,", line,
		                    *line ? " " : "", (int)n, names,
		                    (long long)*value++);
	}
	out_line(e->out, "%s", line);
}

const char *
emit_list(const struct emit *e, const int64_t *v, int n)
{
	const char *s = "CKR_LIST(";

	for (int i = 0; i < n; i++)
		s = arena_printf(e->arena, "%s%lld%s", s, (long long)v[i],
		                 i + 1 < n ? ", " : ")");
	return n ? s : "NULL";
}

const char *
emit_ctype(DType dt)
{
	return dtype_info[dt].ctype;
}

void
emit_pointer(struct emit *e, const char *name, const Val *v, int i,
             bool constant)
{
	const char *quality = constant ? "const " : "";

	out_line(e->out, "%s%s *%s = (%s%s *)p[%d];", quality,
	         emit_ctype(v->dt), name, quality, emit_ctype(v->dt), i);
}

int64_t
emit_workspace_bytes(const struct emit *e, const Node *n)
{
	return e->target->workspace(e->g, n, e->threads);
}

const char *
p_workspace(const struct emit *e, const Node *n)
{
	return emit_workspace_bytes(e, n) == 0 ? "NULL"
		: arena_printf(e->arena, "p[%d]", emit_workspace(n));
}

/* What stands behind a $; *s moves behind it. */
static const char *
placeholder_text(const struct emit *e, const Node *n, const char **s)
{
	switch (*(*s)++) {
	case 'i':
		return p_in(e, n, *(*s)++ - '0');
	case 'o':
		return p_out(e, n, *(*s)++ - '0');
	case 'w':
		return p_workspace(e, n);
	default:
		++*s;
		return emit_workspace_bytes(e, n) == 0 ? ""
			: arena_printf(e->arena, ", p[%d]", emit_workspace(n));
	}
}

const char *
emit_text(const struct emit *e, const Node *n, const char *text)
{
	struct out o = { .arena = e->arena };
	const char *at;

	for (; (at = strchr(text, '$')); text = at) {
		out_bytes(&o, text, (size_t)(at++ - text));
		out_put(&o, "%s", placeholder_text(e, n, &at));
	}
	out_put(&o, "%s", text);
	return o.s;
}

void
emit_line(struct emit *e, const Node *n, const char *fmt, ...)
{
	struct out o = { .arena = e->arena };
	va_list ap;

	va_start(ap, fmt);
	out_vput(&o, emit_text(e, n, fmt), ap);
	va_end(ap);
	out_line(e->out, "%s", o.s);
}

void
emit_work_items(struct emit *e, int64_t count, bool shared)
{
	e->items = count > e->items ? count : e->items;
	e->emitter->work_items(e, count, shared);
}

int
emit_job(struct emit *e, const char *row)
{
	size_t n = (size_t)e->njob;

	for (int i = 0; i < e->njob; i++)
		if (!strcmp(e->job[i], row))
			return i;
	e->job = arena_grow(e->arena, e->job, n, &e->job_cap, n + 1,
	                    sizeof *e->job);
	e->job[n] = row;
	return e->njob++;
}

bool
emit_nest(struct emit *e, const struct loop_nest *nest)
{
	return e->emitter->nest(e, nest);
}

const char *
emit_const(struct emit *e, int64_t value)
{
	int i = e->nconst;

	if (i == EMIT_CONSTS)
		return arena_printf(e->arena, "INT64_C(%lld)",
		                    (long long)value);
	e->constant[e->nconst++] = value;
	return arena_printf(e->arena, "c[%d]", i);
}

static const char *
special_float(Arena *a, double x, const char *suffix)
{
	if (isnan(x))
		return arena_printf(a, "__builtin_nan%s(\"\")", suffix);
	return arena_printf(a, "%s__builtin_inf%s()", x < 0 ? "-" : "",
	                    suffix);
}

const char *
emit_float(Arena *a, double x)
{
	float f = (float)x;
	char buf[40];

	if (isnan(f) || isinf(f))
		return special_float(a, (double)f, "f");
	snprintf(buf, sizeof buf, "%.9g", (double)f);
	return arena_printf(a, "%s%sf", buf, strpbrk(buf, ".e") ? "" : ".0");
}

const char *
emit_double(Arena *a, double x)
{
	char buf[40];

	if (isnan(x) || isinf(x))
		return special_float(a, x, "");
	snprintf(buf, sizeof buf, "%.17g", x);
	return arena_printf(a, "%s%s", buf, strpbrk(buf, ".e") ? "" : ".0");
}

void
emit_shapes(struct emit *e, const Node *n)
{
	struct out *o = e->out;
	char buf[200];

	for (int i = 0; i < o->indent; i++)
		out_bytes(o, "\t", 1);
	out_put(o, "/*");
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = emit_val(e, n, i);

		out_put(o, "%s %s", i == n->nin ? " ->" : i ? "," : "",
		        v ? shape_text(buf, sizeof buf, v->dt, &v->shape)
		          : "none");
	}
	out_put(o, " */\n");
}

const char *
emit_planes(struct emit *e, const Shape *s)
{
	return arena_printf(e->arena, "%lld, %lld, %lld",
	                    (long long)s->dim[0], (long long)s->dim[1],
	                    (long long)shape_span(s, 2, s->rank));
}

int
emit_axis(int64_t axis, int rank)
{
	return (int)(axis < 0 ? axis + rank : axis);
}

bool
emit_unsupported(struct emit *e, const Node *n, DType dt)
{
	return emit_unsupported_op(e, n, n->op, dt);
}

bool
emit_unsupported_op(struct emit *e, const Node *n, Op op, DType dt)
{
	const struct origin *o = &e->g->origin[n->norigin ? n->origin[0] : 0];

	return diag_at(e->diag, n->norigin ? o->name : NULL,
	               n->norigin ? o->op : NULL,
	               "%s is not supported for %s%s", op_info[op].text,
	               dtype_info[dt].text, dtype_info[dt].cls == 'f'
	               ? "; export this part in float32: .float() where the "
	               "model says .double()" : "");
}

void
emit_include(struct emit *e, const char *name)
{
	int at = 0;

	while (at < e->ninclude && strcmp(e->include[at], name) < 0)
		at++;
	if (at < e->ninclude && !strcmp(e->include[at], name))
		return;
	assert(e->ninclude < EMIT_INCLUDES);
	for (int i = e->ninclude++; i > at; i--)
		e->include[i] = e->include[i - 1];
	e->include[at] = name;
}

bool
emit_float_operands(struct emit *e, const Node *n, const char *include)
{
	emit_include(e, include);
	emit_shapes(e, n);
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = emit_val(e, n, i);

		if (v && dtype_info[v->dt].cls == 'f'
		    && !e->emitter->takes(v->dt))
			return emit_unsupported(e, n, v->dt);
	}
	return true;
}

bool
emit_row_operand(struct emit *e, const Node *n, const char *include,
                 const Val *v)
{
	emit_include(e, include);
	emit_shapes(e, n);
	return e->emitter->takes(v->dt) || emit_unsupported(e, n, v->dt);
}
