/* Dims: give the graph's inputs known shapes.
 *
 * A symbolic extent takes its size from --dim NAME=N, from --dim INPUT.AXIS=N
 * or from its position in a --shape; the same name means the same size
 * everywhere.  An unbound name that is an expression of other names with
 * + - * / and parentheses ("batch*seq", as exporters write) is computed.
 *
 * needs  nothing     gives  P_BOUND     changes  shapes of inputs only
 * cost   inputs * bindings
 * refuses  unbound, unknown, contradictory and non-positive sizes; all of
 *          them are reported, each with the flag that helps.
 */
#include "passes/pass.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Far above any useful extent; keeps products of two extents in range. */
#define EXTENT_MAX ((int64_t)1 << 31)

enum { DEPTH_MAX = 32 };

struct name {
	const char *text;
	int64_t size;
	const char *origin;             /* "--dim", or input of a --shape */
};

struct bind {
	Pass *p;
	Graph *g;
	struct name *name;
	int nname;
	size_t cap;
	bool ok;
};

static bool
is_given(const Val *v)
{
	return v->kind == V_INPUT || v->kind == V_PARAM || v->kind == V_BUFFER;
}

static const char *
input_label(const Val *v)
{
	return v->onnx ? v->onnx : v->name;
}

static Val *
find_input(Graph *g, const char *s, size_t n)
{
	FOR_VALS (v, g)
		if (is_given(v) && ((v->onnx && strlen(v->onnx) == n
		                     && memcmp(v->onnx, s, n) == 0)
		                    || (strlen(v->name) == n
		                        && memcmp(v->name, s, n) == 0)))
			return v;
	return NULL;
}

static struct name *
find_name(struct bind *b, const char *s, size_t n)
{
	for (int i = 0; i < b->nname; i++)
		if (strlen(b->name[i].text) == n
		    && memcmp(b->name[i].text, s, n) == 0)
			return &b->name[i];
	return NULL;
}

static void
add_name(struct bind *b, const char *text, int64_t size, const char *origin)
{
	struct name *old = find_name(b, text, strlen(text));

	if (old) {
		if (old->size != size)
			b->ok = diag_error(b->p->diag, "dim '%s' has "
			                   "conflicting sizes: %lld from %s, "
			                   "%lld from %s", text,
			                   (long long)old->size, old->origin,
			                   (long long)size, origin);
		return;
	}
	b->name = arena_grow(b->p->scratch, b->name, (size_t)b->nname, &b->cap,
	                     (size_t)b->nname + 1, sizeof *b->name);
	b->name[b->nname++] = (struct name){ text, size, origin };
}

/* ---- expressions of names ---- */

struct expr {
	struct bind *b;
	const char *s;
	int depth;
};

static bool parse_sum(struct expr *, int64_t *);

static void
skip_blanks(struct expr *e)
{
	while (*e->s == ' ')
		e->s++;
}

static bool
parse_atom(struct expr *e, int64_t *x)
{
	skip_blanks(e);
	if (*e->s == '(') {
		e->s++;
		if (++e->depth > DEPTH_MAX || !parse_sum(e, x))
			return false;
		skip_blanks(e);
		e->depth--;
		return *e->s++ == ')';
	}
	if (isdigit((unsigned char)*e->s)) {
		char *end;
		*x = strtoll(e->s, &end, 10);
		e->s = end;
		return *x <= EXTENT_MAX;
	}
	size_t n = strcspn(e->s, "+-*/() ");
	struct name *name = find_name(e->b, e->s, n);
	if (n == 0 || !name)
		return false;
	e->s += n;
	*x = name->size;
	return true;
}

static bool
parse_product(struct expr *e, int64_t *x)
{
	int64_t y;

	if (!parse_atom(e, x))
		return false;
	for (;;) {
		skip_blanks(e);
		char op = *e->s;
		if (op != '*' && op != '/')
			return true;
		/* "//" is how sympy, and so PyTorch, writes floor division */
		e->s += op == '/' && e->s[1] == '/' ? 2 : 1;
		if (!parse_atom(e, &y))
			return false;
		if (op == '*' ? !mul_ok(*x, y, x) : y <= 0)
			return false;
		if (op == '/')
			*x /= y;
	}
}

static bool
parse_sum(struct expr *e, int64_t *x)
{
	int64_t y;

	if (!parse_product(e, x))
		return false;
	for (;;) {
		skip_blanks(e);
		char op = *e->s;
		if (op != '+' && op != '-')
			return true;
		e->s++;
		if (!parse_product(e, &y))
			return false;
		if (op == '+' ? !add_ok(*x, y, x)
		              : __builtin_sub_overflow(*x, y, x))
			return false;
	}
}

/* The size of a dim name: bound itself, or an expression of bound names. */
static bool
evaluate_dim(struct bind *b, const char *text, int64_t *x)
{
	struct name *name = find_name(b, text, strlen(text));
	struct expr e = { b, text, 0 };

	if (name) {
		*x = name->size;
		return true;
	}
	if (!parse_sum(&e, x))
		return false;
	skip_blanks(&e);
	return *e.s == '\0';
}

/* ---- bindings by the user ---- */

static bool
check_size(struct bind *b, const char *flag, const char *name, int64_t size)
{
	if (size > 0 && size <= EXTENT_MAX)
		return true;
	b->ok = diag_error(b->p->diag, "%s%s%s: size %lld is not between 1 "
	                   "and %lld", flag, *name ? " " : "", name,
	                   (long long)size, (long long)EXTENT_MAX);
	return false;
}

/* Text on how to give a fixed extent a name in the export. */
static const char *
export_hint(struct bind *b, const Val *v, int axis, const char *name)
{
	return arena_printf(b->p->scratch, "; to make the size dynamic, export "
	                    "with dynamic_shapes={\"%s\": {%d: \"%s\"}} "
	                    "(dynamo) or dynamic_axes (TorchScript)",
	                    input_label(v), axis, name);
}

static void
set_extent(struct bind *b, Val *v, int axis, int64_t size, const char *flag)
{
	int64_t *dim = &v->shape.dim[axis];

	if (*dim >= 0 && *dim != size) {
		b->ok = diag_error(b->p->diag, "%s: axis %d of input '%s' is "
		                   "%lld, not %lld%s", flag, axis,
		                   input_label(v), (long long)*dim,
		                   (long long)size, v->dim_name[axis] ? ""
		                   : export_hint(b, v, axis, axis ? "name"
		                                 : "batch"));
		return;
	}
	*dim = size;
	if (v->dim_name[axis])
		add_name(b, v->dim_name[axis], size, flag);
}

/* An extent whose size was refused counts as bound, to avoid more messages. */
static void
pass_over(struct bind *b, Val *v, int axis)
{
	const char *name = v->dim_name[axis];

	v->shape.dim[axis] = 1;
	if (name && !find_name(b, name, strlen(name)))
		add_name(b, name, 1, "");
}

/* Whether s occurs in the expression `text` as a whole name. */
static bool
occurs_in(const char *text, const char *s)
{
	size_t n = strlen(s);

	while (*text) {
		size_t k = strcspn(text, "+-*/() ");
		if (k == n && memcmp(text, s, n) == 0)
			return true;
		text += k ? k : 1;
	}
	return false;
}

/* Whether an extent of an input has that name, or an expression of it; NULL:
 * whether any has a name. */
static bool
is_dim_name(const Graph *g, const char *name)
{
	FOR_VALS (v, g)
		for (int d = 0; is_given(v) && d < v->shape.rank; d++)
			if (v->dim_name[d]
			    && (!name || !strcmp(v->dim_name[d], name)
			        || occurs_in(v->dim_name[d], name)))
				return true;
	return false;
}

/* The same for a name that may refer to the first axis. */
static const char *
example_hint(struct bind *b, const char *name)
{
	FOR_VALS (v, b->g)
		if (v->kind == V_INPUT && v->shape.rank > 0)
			return export_hint(b, v, 0, name);
	return "";
}

static void
list_known(struct bind *b)
{
	FOR_VALS (v, b->g)
		for (int d = 0; is_given(v) && d < v->shape.rank; d++) {
			bool first = v->dim_name[d] != NULL;
			/* list each name at its first occurrence */
			FOR_VALS (u, b->g)
				for (int k = 0; u <= v && is_given(u)
				     && k < (u < v ? u->shape.rank : d); k++)
					if (first && u->dim_name[k])
						first = strcmp(u->dim_name[k],
						          v->dim_name[d]) != 0;
			if (!first)
				continue;
			diag_more(b->p->diag, "'%s' (axis %d of '%s')",
			          v->dim_name[d], d, input_label(v));
		}
}

/* INPUT.AXIS; the name of an input may contain dots itself. */
static bool
bind_axis(struct bind *b, struct dim_binding *d, const char *flag)
{
	const char *dot = strrchr(d->name, '.');
	char *end;

	if (!dot || !isdigit((unsigned char)dot[1]))
		return false;
	Val *v = find_input(b->g, d->name, (size_t)(dot - d->name));
	long axis = strtol(dot + 1, &end, 10);
	if (!v || *end)
		return false;
	if (v->shape.rank < 0) {
		b->ok = diag_error(b->p->diag, "%s: the rank of input '%s' is "
		                   "unknown; try: --shape %s=AxBx...", flag,
		                   input_label(v), input_label(v));
		return true;
	}
	if (axis >= v->shape.rank) {
		b->ok = diag_error(b->p->diag, "%s: axis out of range: input "
		                   "'%s' has rank %d",
		                   flag, input_label(v), v->shape.rank);
		return true;
	}
	set_extent(b, v, (int)axis, d->size, flag);
	return true;
}

static void
bind_dims(struct bind *b)
{
	for (int i = 0; i < b->p->opt->ndim; i++) {
		struct dim_binding *d = &b->p->opt->dim[i];
		const char *flag = arena_printf(b->p->scratch,
			"--dim %s=%lld", d->name, (long long)d->size);
		d->used = true;
		if (!check_size(b, "--dim", d->name, d->size)) {
			add_name(b, d->name, 1, flag);
			continue;
		}
		if (is_dim_name(b->g, d->name)) {
			add_name(b, d->name, d->size, flag);
			continue;
		}
		if (bind_axis(b, d, flag))
			continue;
		d->used = false;
		if (is_dim_name(b->g, NULL)) {
			b->ok = diag_error(b->p->diag, "%s: no such dim; named "
			                   "dims:", flag);
			list_known(b);
		} else {
			b->ok = diag_error(b->p->diag, "%s: the model has no "
			                   "named dims%s", flag,
			                   example_hint(b, d->name));
		}
	}
}

static void
bind_shapes(struct bind *b)
{
	for (int i = 0; i < b->p->opt->nshape; i++) {
		struct shape_binding *s = &b->p->opt->shape[i];
		Val *v = find_input(b->g, s->input, strlen(s->input));
		const char *flag = arena_printf(b->p->scratch, "--shape %s",
		                                s->input);
		if (!v) {
			b->ok = diag_error(b->p->diag, "%s: no such input; "
			                   "inputs:", flag);
			FOR_VALS (u, b->g)
				if (u->kind == V_INPUT)
					diag_more(b->p->diag, "'%s'",
					          input_label(u));
			continue;
		}
		s->used = true;
		if (v->shape.rank < 0) {
			v->shape.rank = s->shape.rank;
			for (int d = 0; d < s->shape.rank; d++)
				v->shape.dim[d] = -1;
		}
		if (v->shape.rank != s->shape.rank) {
			b->ok = diag_error(b->p->diag, "%s: found %d extents, "
			                   "but the input has rank %d", flag,
			                   s->shape.rank, v->shape.rank);
			continue;
		}
		for (int d = 0; d < s->shape.rank; d++)
			if (check_size(b, flag, "", s->shape.dim[d]))
				set_extent(b, v, d, s->shape.dim[d], flag);
			else
				pass_over(b, v, d);
	}
}

/* ---- checks ---- */

/* Report each unbound name in expressions once. */
static void
report_unbound(struct bind *b, const char *text, const Val *v, int axis)
{
	bool parts = false;

	for (const char *s = text; *s; ) {
		size_t n = strcspn(s, "+-*/() ");
		parts |= n > 0 && n < strlen(text)
		         && !isdigit((unsigned char)*s) && find_name(b, s, n);
		s += n ? n : 1;
	}
	const char *quote = text[strcspn(text, " *()")] ? "'" : "";
	b->ok = diag_error(b->p->diag, "dim '%s' (axis %d of input '%s') is "
	                   "not bound%s; try: --dim %s%s=N%s", text, axis,
	                   input_label(v), parts ? ", and some of its names "
	                   "are not bound either" : "", quote, text, quote);
	/* reported once: later uses count as bound */
	add_name(b, text, 1, "");
}

static void
resolve_dims(struct bind *b, Val *v)
{
	if (v->shape.rank < 0) {
		b->ok = diag_error(b->p->diag, "input '%s' has no shape; try: "
		                   "--shape %s=AxBx...", input_label(v),
		                   input_label(v));
		return;
	}
	for (int d = 0; d < v->shape.rank; d++) {
		const char *text = v->dim_name[d];
		int64_t x, *dim = &v->shape.dim[d];
		if (*dim >= 0)
			continue;
		if (!text)
			b->ok = diag_error(b->p->diag, "axis %d of input '%s' "
			                   "is unknown; try: --dim %s.%d=N", d,
			                   input_label(v), input_label(v), d);
		else if (!evaluate_dim(b, text, &x))
			report_unbound(b, text, v, d);
		else if (x <= 0 || x > EXTENT_MAX)
			b->ok = diag_error(b->p->diag, "dim '%s' of input '%s' "
			                   "evaluates to %lld, which is out of "
			                   "range", text, input_label(v),
			                   (long long)x);
		else
			*dim = x;
	}
	if (b->ok && (v->dt == DT_NONE ? shape_nelem(&v->shape)
	                               : val_data_bytes(v)) < 0)
		b->ok = diag_error(b->p->diag, "input '%s' is too large",
		                   input_label(v));
}

/* Report a name with two sizes, which bindings by axis can cause. */
static void
check_dim_names(struct bind *b, const Val *v)
{
	for (int d = 0; d < v->shape.rank; d++) {
		const char *text = v->dim_name[d];
		struct name *n = text ? find_name(b, text, strlen(text)) : NULL;
		if (n && n->size != v->shape.dim[d])
			b->ok = diag_error(b->p->diag, "dim '%s' has "
			                   "conflicting sizes: %lld from %s, "
			                   "%lld on axis %d of '%s'", text,
			                   (long long)n->size, n->origin,
			                   (long long)v->shape.dim[d], d,
			                   input_label(v));
	}
}

bool
pass_bind(Pass *p, Graph *g)
{
	struct bind b = { .p = p, .g = g, .ok = true };

	bind_dims(&b);
	bind_shapes(&b);
	FOR_VALS (v, g)
		if (is_given(v))
			resolve_dims(&b, v);
	if (b.ok)
		FOR_VALS (v, g)
			if (is_given(v))
				check_dim_names(&b, v);
	return b.ok;
}
