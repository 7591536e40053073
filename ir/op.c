/* The table of ops.h: ops and their attributes.
 *
 * in      rows of the table
 * out     what an op is, and attributes by name, default or equal
 */
#include "ir/ir.h"

#include <string.h>

const struct op_info op_info[OP_COUNT] = {
	[OP_NONE] = { "none", 0, 0, 0, NOSTAT, 0 },
#define SIG(min, max, nout, nstat, flags) min, max, nout, nstat, flags
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = { text, sig },
#include "ir/ops.h"
};

/* The row's attribute list expands twice: first as a struct, for offsets,
 * then as a table. */
#define ATTR(...) struct { char none_; __VA_ARGS__ }
#define I(name, def) int64_t name;
#define F(name, def) double name;
#define L(name) IntList name;
#define OP(id, text, sig, attr, rules, emit) typedef attr attr_of_##id;
#include "ir/ops.h"
#undef I
#undef F
#undef L

bool
op_fuses(Op op)
{
	return (op_info[op].flags & (F_EW | F_ALONE)) == F_EW;
}

int
op_accumulator(Op op)
{
	return (int)(op_info[op].flags / F_ACC(1) & 7);
}

int
op_norm(Op op)
{
	return op_info[op].max - (op_info[op].flags & F_COPY ? 2 : 1);
}

int
op_overwrites(Op op, int k)
{
	if (op_info[op].flags & F_COPY && k == op_info[op].nout - 1)
		return op_info[op].max - 1;
	return k ? k + 1 : 0;
}

Op
op_find(const char *text)
{
	for (Op op = OP_NONE + 1; op < OP_COUNT; op++)
		if (strcmp(op_info[op].text, text) == 0)
			return op;
	return OP_NONE;
}

const struct attr_info *
op_attrs(Op op, int *n)
{
	const struct attr_info *table = NULL;

#define ATTR(...) { __VA_ARGS__ { NULL, AT_INT, 0, 0, 0 } }
#define I(name, def) { #name, AT_INT, offsetof(row, name), 0, def },
#define F(name, def) { #name, AT_FLOAT, offsetof(row, name), def, 0 },
#define L(name) { #name, AT_LIST, offsetof(row, name), 0, 0 },
#define OP(id, text, sig, attr, rules, emit) \
	case OP_##id: { \
		typedef attr_of_##id row; \
		static const struct attr_info t[] = attr; \
		row *used = NULL; \
		(void)used; \
		table = t; \
		break; \
	}
	switch (op) {
#include "ir/ops.h"
	default:
		break;
	}
#undef I
#undef F
#undef L
	*n = 0;
	while (table && table[*n].name)
		++*n;
	return table;
}

static void *
find_attr_field(Op op, Attr *a, const char *name, enum attr_type type)
{
	int n;
	const struct attr_info *t = op_attrs(op, &n);

	for (int i = 0; i < n; i++)
		if (t[i].type == type && strcmp(t[i].name, name) == 0)
			return (char *)a + t[i].offset;
	return NULL;
}

int64_t *
attr_int_of(Op op, Attr *a, const char *name)
{
	return find_attr_field(op, a, name, AT_INT);
}

double *
attr_float_of(Op op, Attr *a, const char *name)
{
	return find_attr_field(op, a, name, AT_FLOAT);
}

IntList *
attr_list_of(Op op, Attr *a, const char *name)
{
	return find_attr_field(op, a, name, AT_LIST);
}

DType
op_type(Op op, const Attr *attr, const DType from[3])
{
	unsigned flags = op_info[op].flags;
	const int64_t *to;
	Attr a;

	if (flags & F_TO_BOOL)
		return DT_BOOL;
	if (flags & F_TO_I64)
		return DT_I64;
	if (flags & F_TO_ATTR) {
		a = *attr;
		to = attr_int_of(op, &a, "to");
		return (DType)*(to ? to : attr_int_of(op, &a, "dt"));
	}
	return from[flags & F_OF_1 ? 1 : flags & F_OF_2 ? 2 : 0];
}

Attr
attr_default(Op op)
{
	Attr a;
	int n;
	const struct attr_info *t = op_attrs(op, &n);

	memset(&a, 0, sizeof a);
	for (int i = 0; i < n; i++) {
		char *p = (char *)&a + t[i].offset;

		if (t[i].type == AT_INT)
			memcpy(p, &t[i].idef, sizeof t[i].idef);
		else if (t[i].type == AT_FLOAT)
			memcpy(p, &t[i].def, sizeof t[i].def);
	}
	return a;
}

Attr
attr_reshape(const Shape *s)
{
	Attr a = attr_default(OP_RESHAPE);

	a.RESHAPE.shape = shape_list(s);
	a.RESHAPE.allowzero = shape_nelem(s) == 0;
	return a;
}

Attr
attr_expand(const Shape *s)
{
	Attr a = attr_default(OP_EXPAND);

	a.EXPAND.shape = shape_list(s);
	return a;
}

Attr
attr_cast(DType to)
{
	Attr a = attr_default(OP_CAST);

	a.CAST.to = to;
	return a;
}

bool
attr_equal(Op op, const Attr *a, const Attr *b)
{
	int n;
	const struct attr_info *t = op_attrs(op, &n);

	for (int i = 0; i < n; i++) {
		const char *p = (const char *)a + t[i].offset;
		const char *q = (const char *)b + t[i].offset;

		if (t[i].type != AT_LIST) {
			if (memcmp(p, q, 8))
				return false;
			continue;
		}
		const IntList *x = (const IntList *)p, *y = (const IntList *)q;

		if (x->n != y->n
		    || memcmp(x->v, y->v, (size_t)x->n * sizeof x->v[0]))
			return false;
	}
	return true;
}
