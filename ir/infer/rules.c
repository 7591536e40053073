/* What the rules of shape inference share: operands, demands on them, and
 * results; see rules.h. */
#include "ir/infer/rules.h"

#include <string.h>

const char *
rule_text(char buf[INFER_TEXT], const struct infer *c, int i)
{
	return shape_text(buf, INFER_TEXT, in(c, i)->dt, &in(c, i)->shape);
}

bool
rule_same_type(struct infer *c, int i, int j)
{
	DType a = in(c, i)->dt, b = in(c, j)->dt;

	if (a == b || a == DT_NONE || b == DT_NONE)
		return true;
	return rule_fail(c, "operands have different dtypes: %s and %s",
			 dtype_info[a].text, dtype_info[b].text);
}

bool
rule_want_class(struct infer *c, int i, const char *cls, const char *what)
{
	if (in(c, i)->dt == DT_NONE || strchr(cls, class_of(c, i)))
		return true;
	return rule_fail(c, "operand %d: expected %s, found %s", i, what,
			 dtype_info[in(c, i)->dt].text);
}

bool
rule_dims_fit(const Shape *a, const Shape *b)
{
	if (a->rank < 0 || b->rank < 0)
		return true;
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] >= 0 && b->dim[i] >= 0 && a->dim[i] != b->dim[i])
			return false;
	return true;
}

bool
rule_want_shape(struct infer *c, int i, const Shape *s, const char *what)
{
	char want[INFER_TEXT], found[INFER_TEXT];

	if (!has(c, i) || rule_dims_fit(s, &in(c, i)->shape))
		return true;
	return rule_fail(c, "%s: expected %s, found %s", what,
			 shape_text(want, INFER_TEXT, in(c, i)->dt, s),
			 rule_text(found, c, i));
}

bool
rule_want_rank(struct infer *c, int i, int min)
{
	char text[INFER_TEXT];

	if (!has(c, i) || in(c, i)->shape.rank < 0
	    || in(c, i)->shape.rank >= min)
		return true;
	return rule_fail(c, "operand %d: expected rank %d or more, found %s", i,
			 min, rule_text(text, c, i));
}

bool
rule_axis(struct infer *c, int64_t axis, int rank, int *out)
{
	int r = rank ? rank : 1;

	if (axis < -r || axis >= r)
		return rule_fail(c, "axis %lld is out of range for rank %d",
				 (long long)axis, rank);
	*out = (int)(axis < 0 ? axis + r : axis);
	return true;
}

bool
rule_result(struct infer *c, int k, DType dt, Shape s)
{
	char want[INFER_TEXT], found[INFER_TEXT];
	Val *v;

	if (k >= c->n->nout || !c->n->out[k])
		return true;
	v = &c->g->val[c->n->out[k]];
	if ((dt != DT_NONE && v->dt != DT_NONE && v->dt != dt)
	    || !rule_dims_fit(&s, &v->shape))
		return rule_fail(
			c, "output %d '%s': expected %s, found %s", k, v->name,
			shape_text(want, INFER_TEXT, dt ? dt : v->dt, &s),
			shape_text(found, INFER_TEXT, v->dt, &v->shape));
	if (v->dt == DT_NONE)
		v->dt = dt;
	if (v->shape.rank < 0)
		v->shape = s;
	for (int i = 0; i < s.rank; i++)
		if (v->shape.dim[i] < 0)
			v->shape.dim[i] = s.dim[i];
	if (shape_known(&v->shape) && v->dt != DT_NONE
	    && val_data_bytes(v) < 0)
		return rule_fail(c, "output %d '%s': %s is too large", k,
				 v->name,
				 shape_text(found, INFER_TEXT, v->dt,
					    &v->shape));
	return true;
}

bool
rule_shape(struct infer *c, Shape s)
{
	return rule_result(c, 0, in(c, 0)->dt, s);
}

enum operand_state
rule_operand(const struct infer *c, int i)
{
	if (!has(c, i))
		return ABSENT;
	return val_is_const(in(c, i)) ? KNOWN : COMPUTED;
}

int64_t
rule_length(const struct infer *c, int i)
{
	return val_nelem(in(c, i));
}

bool
rule_list(struct infer *c, int i, IntList *l)
{
	int64_t n = rule_length(c, i);

	if (rule_operand(c, i) != KNOWN)
		return true;
	if (n < 0 || n > MAX_RANK)
		return rule_fail(c, "operand %d: expected at most %d elements, "
		                 "found %lld", i, MAX_RANK, (long long)n);
	l->n = (int)n;
	for (int k = 0; k < l->n; k++)
		l->v[k] = val_int(in(c, i), k);
	return true;
}

bool
rule_axes(struct infer *c, int i, IntList *l, int rank, bool set[MAX_RANK])
{
	memset(set, 0, MAX_RANK * sizeof *set);
	if (!rule_list(c, i, l))
		return false;
	for (int k = 0; k < l->n; k++) {
		int axis;

		if (!rule_axis(c, l->v[k], rank, &axis))
			return false;
		if (set[axis])
			return rule_fail(c, "duplicate axis %d", axis);
		set[axis] = true;
	}
	return true;
}

bool
rule_broadcast(struct infer *c, int first, int last, Shape *s)
{
	*s = shape_scalar();
	for (int i = first; i < last; i++) {
		char a[INFER_TEXT], b[INFER_TEXT];

		if (!has(c, i))
			continue;
		if (!shape_broadcast(s, &in(c, i)->shape))
			return rule_fail(
				c, "shapes do not broadcast: %s and %s",
				shape_text(a, INFER_TEXT, in(c, first)->dt, s),
				rule_text(b, c, i));
	}
	return true;
}

bool
rule_append(struct infer *c, Shape *s, const Shape *x, int first, int last)
{
	for (int i = first; i < last; i++) {
		if (s->rank == MAX_RANK)
			return rule_fail(c, "rank above %d is not supported",
					 MAX_RANK);
		s->dim[s->rank++] = x->dim[i];
	}
	return true;
}
