/* Einsum: any number of operands, two at a time.
 *
 * Labels that only one operand has and that are not needed later are summed at
 * once.  The other labels of a pair are shared and kept (batch), shared and
 * summed (contracted), or of one operand (rows, columns):
 *   [batch, rows, contracted] @ [batch, contracted, columns]
 * with each group flattened into one dim.  Without contracted labels the pair
 * is multiplied element by element.  The graph computes extents from the
 * operands, so they may be unknown here; an ellipsis needs a known rank.
 */
#include "frontend/import/node_import.h"

#include <string.h>

enum { MAX_TERMS = 16 };

struct term {
	ValId v;
	int n;
	char label[MAX_RANK + 1];
};

struct einsum {
	struct importer *m;
	int nterm, ndots;               /* ndots: rank of the ellipsis */
	struct term term[MAX_TERMS], out;
	ValId extent[128];              /* by label: list of one */
	bool one[128];                  /* by label: extent 1 in all terms */
	bool short_dim[MAX_TERMS][128]; /* by label: extent 1 in the term */
};

static bool
has_label(const struct term *t, char c)
{
	return memchr(t->label, c, (size_t)t->n) != NULL;
}

/* ---- the equation ---- */

/* Labels of an ellipsis are digits; its last dim has '7'. */
static bool
push_label(struct einsum *e, struct term *t, char c)
{
	if (t->n == MAX_RANK)
		return imp_fail(e->m, "more than %d labels are not supported",
		                MAX_RANK);
	t->label[t->n++] = c;
	return true;
}

/* Parse one term up to a comma, an arrow or the end; ndots: rank of its
 * ellipsis. */
static bool
read_term(struct einsum *e, const char **s, const char *end, struct term *t,
          int ndots)
{
	for (; *s < end && **s != ',' && **s != '-'; ++*s) {
		char c = **s;

		if (c == ' ')
			continue;
		if (c == '.') {
			if (end - *s < 3 || memcmp(*s, "...", 3) != 0)
				return imp_fail(e->m, "the equation has a "
				                "single dot: expected '...'");
			for (int i = 0; i < ndots; i++)
				if (!push_label(e, t, (char)('8' - ndots + i)))
					return false;
			*s += 2;
			continue;
		}
		if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z'))
			return imp_fail(e->m, "the equation has a character "
			                "that is not a letter");
		if (!push_label(e, t, c))
			return false;
	}
	return true;
}

/* Rank of the ellipsis of the term at s; -1: unknown. */
static int
count_dots(const struct einsum *e, const char *s, const char *end, int input)
{
	int rank, letters = 0;
	bool dots = false;

	for (; s < end && *s != ',' && *s != '-'; s++) {
		dots |= *s == '.';
		letters += *s != '.' && *s != ' ';
	}
	if (!dots)
		return 0;
	return !imp_rank(e->m, input, &rank) || rank < letters ? -1
		: rank - letters;
}

/* Without an arrow: labels that occur once, in alphabetical order. */
static bool
implicit_output(struct einsum *e)
{
	for (int c = 0; c < 128; c++) {
		int count = 0;

		for (int i = 0; i < e->nterm; i++)
			for (int k = 0; k < e->term[i].n; k++)
				count += e->term[i].label[k] == c;
		if ((count == 1 || (c >= '0' && c <= '7' && count))
		    && !push_label(e, &e->out, (char)c))
			return false;
	}
	return true;
}

static bool
read_equation(struct einsum *e, const char *s, const char *end)
{
	for (int i = 0; i < e->m->n->nin; i++) {
		int dots;

		if (i && (s >= end || *s++ != ','))
			return imp_fail(e->m, "found %d operands, but the "
			                "equation has fewer", e->m->n->nin);
		dots = count_dots(e, s, end, i);
		if (dots < 0)
			return imp_fail(e->m, "the ellipsis needs the rank of "
			                "operand %d, which is unknown", i);
		e->term[i].v = imp_in(e->m, i);
		e->ndots = dots > e->ndots ? dots : e->ndots;
		if (!read_term(e, &s, end, &e->term[i], dots))
			return false;
	}
	e->nterm = e->m->n->nin;
	if (s == end)
		return implicit_output(e);
	if (end - s < 2 || memcmp(s, "->", 2) != 0)
		return imp_fail(e->m, "the equation has more operands than the "
		                "node");
	s += 2;
	return read_term(e, &s, end, &e->out, e->ndots)
		&& (s == end || imp_fail(e->m, "unexpected text after the "
		                         "result of the equation"));
}

/* ---- pieces ---- */

static ValId
concat_shape(struct einsum *e, int n, const ValId *x)
{
	return n == 1 ? x[0] : imp_concat(e->m, 0, n, x);
}

/* Extent k of operand i; -1: not known yet. */
static int64_t
operand_dim(const struct einsum *e, int i, int k)
{
	const struct flat_known *known = flat_find(e->m->f, e->m->n->in[i]);

	if (known && k < known->shape.rank)
		return known->shape.dim[k];
	return imp_dim(e->m, e->term[i].v, k);
}

/* A dim of 1 broadcasts to the extent of its label in other terms.  A letter's
 * dim must be known to be 1 or not; an ellipsis may be unknown here. */
static void
note_extents(struct einsum *e, int term)
{
	const struct term *t = &e->term[term];
	ValId shape = unary(e->m, OP_SHAPE, t->v);

	for (int i = 0; i < t->n; i++) {
		int label = t->label[i];
		ValId *x = &e->extent[label], here;
		bool one = operand_dim(e, term, i) == 1, dots = label <= '7';

		e->short_dim[term][label] |= one;
		if (*x && !dots && (one || !e->one[label]))
			continue;
		here = binary(e->m, OP_GATHER, shape, imp_one(e->m, i));
		e->one[label] = one && (!*x || e->one[label]);
		*x = *x && dots ? binary(e->m, OP_MAX, *x, here) : here;
	}
}

static bool
has_dots(const struct term *t)
{
	for (int i = 0; i < t->n; i++)
		if (t->label[i] <= '7')
			return true;
	return false;
}

static bool
has_short_dim(const struct einsum *e, int term)
{
	const struct term *t = &e->term[term];

	for (int i = 0; i < t->n; i++)
		if (e->short_dim[term][(int)t->label[i]]
		    && !e->one[(int)t->label[i]])
			return true;
	return false;
}

static void
broadcast_terms(struct einsum *e)
{
	int n = 0;

	for (int i = 0; i < e->nterm; i++)
		n += has_dots(&e->term[i]);
	for (int i = 0; i < e->nterm; i++) {
		struct term *t = &e->term[i];
		ValId shape[MAX_RANK];

		if (!(n > 1 && has_dots(t)) && !has_short_dim(e, i))
			continue;
		for (int k = 0; k < t->n; k++)
			shape[k] = e->extent[(int)t->label[k]];
		t->v = binary(e->m, OP_EXPAND, t->v,
		              concat_shape(e, t->n, shape));
	}
}

static void
drop_label(struct term *t, int at)
{
	memmove(t->label + at, t->label + at + 1, (size_t)(t->n - at - 1));
	t->n--;
}

static void
sum_axis(struct einsum *e, struct term *t, int at)
{
	t->v = imp_reduce(e->m, OP_REDUCE_SUM, t->v, 0,
	                  &(IntList){ 1, { at } }, false, false);
	drop_label(t, at);
}

/* 0, 1, ... along axis `at` of the term. */
static ValId
coordinates(struct einsum *e, const struct term *t, int at)
{
	ValId n = imp_scalar_of(e->m, e->extent[(int)t->label[at]]);

	return imp_reshape_along(e->m, imp_range(e->m, n), at, t->n);
}

/* Take the diagonal of a label that occurs twice in a term. */
static void
extract_diagonals(struct einsum *e, struct term *t)
{
	for (int i = 0; i < t->n; i++)
		for (int k = t->n - 1; k > i; k--) {
			ValId on;

			if (t->label[i] != t->label[k])
				continue;
			on = EMIT_NODE(e->m, OP_EQ, NULL,
			               coordinates(e, t, i),
			               coordinates(e, t, k));
			t->v = EMIT_NODE(e->m, OP_WHERE, NULL, on, t->v,
			                 imp_like(e->m, t->v, 0));
			sum_axis(e, t, k);
		}
}

/* Whether another term or the output still has the label. */
static bool
wanted(const struct einsum *e, char c, int i)
{
	for (int k = 0; k < e->nterm; k++)
		if (k != i && has_label(&e->term[k], c))
			return true;
	return has_label(&e->out, c);
}

static void
sum_unwanted(struct einsum *e, int i)
{
	struct term *t = &e->term[i];

	for (int k = t->n - 1; k >= 0; k--)
		if (!wanted(e, t->label[k], i))
			sum_axis(e, t, k);
}

/* The term's dims in the order of `to`. */
static ValId
arrange(struct einsum *e, const struct term *t, const struct term *to)
{
	IntList perm = { t->n, { 0 } };
	bool moved = false;

	for (int i = 0; i < to->n; i++) {
		const char *at = memchr(t->label, to->label[i], (size_t)t->n);

		perm.v[i] = at - t->label;
		moved |= at - t->label != i;
	}
	return moved ? imp_transpose(e->m, t->v, perm) : t->v;
}

static void
append_labels(struct term *to, const struct term *from)
{
	memcpy(to->label + to->n, from->label, (size_t)from->n);
	to->n += from->n;
}

/* Product of the extents of some labels, as a list of one. */
static ValId
label_extents(struct einsum *e, const struct term *labels)
{
	ValId x = 0;

	for (int i = 0; i < labels->n; i++) {
		ValId d = e->extent[(int)labels->label[i]];

		x = x ? binary(e->m, OP_MUL, x, d) : d;
	}
	return x ? x : imp_one(e->m, 1);
}

/* Flatten each of v's three groups of dims into one; none for an empty batch.
 */
static ValId
flatten_groups(struct einsum *e, ValId v, const struct term *batch,
               const struct term *x, const struct term *y)
{
	ValId shape[3];
	int n = 0;

	if (batch->n)
		shape[n++] = label_extents(e, batch);
	shape[n++] = label_extents(e, x);
	shape[n++] = label_extents(e, y);
	return binary(e->m, OP_RESHAPE, v, concat_shape(e, n, shape));
}

/* Contract terms i and i + 1 into one. */
static bool
contract_pair(struct einsum *e, int i)
{
	struct term *a = &e->term[i], *b = &e->term[i + 1];
	struct term batch = { 0 }, gone = { 0 }, rows = { 0 }, cols = { 0 };
	struct term left, right, y = { 0 };
	ValId shape[MAX_RANK + 1];

	for (int k = 0; k < a->n; k++) {
		char c = a->label[k];
		bool stays = has_label(&e->out, c);
		struct term *to;

		for (int t = i + 2; t < e->nterm; t++)
			stays |= has_label(&e->term[t], c);
		to = !has_label(b, c) ? &rows : stays ? &batch : &gone;
		to->label[to->n++] = c;
	}
	for (int k = 0; k < b->n; k++)
		if (!has_label(a, b->label[k]))
			cols.label[cols.n++] = b->label[k];
	if (batch.n + rows.n + cols.n > MAX_RANK)
		return imp_fail(e->m, "an intermediate result of rank above %d "
		                "is not supported", MAX_RANK);
	left = batch;
	append_labels(&left, &rows);
	append_labels(&left, &gone);
	right = batch;
	append_labels(&right, &gone);
	append_labels(&right, &cols);
	left.v = flatten_groups(e, arrange(e, a, &left), &batch, &rows, &gone);
	right.v = flatten_groups(e, arrange(e, b, &right), &batch, &gone,
	                         &cols);
	y.v = binary(e->m, gone.n ? OP_MATMUL : OP_MUL, left.v, right.v);
	append_labels(&y, &batch);
	append_labels(&y, &rows);
	append_labels(&y, &cols);
	for (int k = 0; k < y.n; k++)
		shape[k] = e->extent[(int)y.label[k]];
	y.v = EMIT_NODE(e->m, OP_RESHAPE, NULL, y.v,
	                y.n ? concat_shape(e, y.n, shape)
	                    : imp_ints(e->m, 0, NULL));
	*a = y;
	memmove(b, b + 1, (size_t)(e->nterm - i - 2) * sizeof *b);
	e->nterm--;
	return true;
}

bool
run_einsum(struct importer *m)
{
	const Onnx__AttributeProto *p = attr_get(&m->r, "equation", 3);
	struct einsum e = { .m = m };
	const char *s;

	if (!p || !p->s.data)
		return imp_fail(m, "missing attribute 'equation'");
	if (m->n->nin > MAX_TERMS)
		return imp_fail(m, "expected at most %d operands, found %d",
		                MAX_TERMS, m->n->nin);
	s = (const char *)p->s.data;
	while (p->s.len > (size_t)(s - (const char *)p->s.data) && *s == ' ')
		s++;
	if (!read_equation(&e, s, (const char *)p->s.data + p->s.len))
		return false;
	for (int i = 0; i < e.nterm; i++) {
		note_extents(&e, i);
		extract_diagonals(&e, &e.term[i]);
	}
	broadcast_terms(&e);
	for (int i = 0; i < e.out.n; i++)
		if (!e.extent[(int)e.out.label[i]]
		    || memchr(e.out.label + i + 1, e.out.label[i],
		              (size_t)(e.out.n - i - 1)))
			return imp_fail(m, "label '%c' of the result is not in "
			                "the operands, or repeated",
			                e.out.label[i]);
	for (int i = 0; i < e.nterm; i++)
		sum_unwanted(&e, i);
	while (e.nterm > 1)
		if (!contract_pair(&e, 0))
			return false;
	return set_output(m, arrange(&e, &e.term[0], &e.out));
}
