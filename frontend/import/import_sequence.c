/* ONNX's sequences of tensors.
 *
 * in      operators that make, edit and read a sequence
 * out     values: a sequence is a list at import, or a tensor still to be
 *         split, and nothing of it stays in the graph
 */
#include "frontend/import/importer.h"

static struct sequence *
new_sequence(struct importer *m)
{
	struct sequence *s = arena_alloc(m->arena, sizeof *s);

	m->f->val[m->n->out[0]].seq = s;
	return s;
}

static struct sequence *
in_sequence(struct importer *m)
{
	struct sequence *s = m->f->val[m->n->in[0]].seq;

	if (!s)
		imp_fail(m, "sequences are supported only between "
		            "SplitToSequence or SequenceConstruct and their "
		            "readers");
	return s;
}

bool
run_split_to_sequence(struct importer *m)
{
	struct sequence *s = new_sequence(m);
	const Val *sizes;
	int64_t keepdims = attr_int(&m->r, "keepdims", 1), chunk;

	s->split = true;
	s->x = imp_in(m, 0);
	s->sizes = imp_in(m, 1);
	s->part = attr_default(OP_PART);
	s->part.PART.axis = attr_int(&m->r, "axis", 0);
	if (!s->sizes) {
		s->part.PART.chunk = 1;
		s->part.PART.keepdims = keepdims != 0;
		return true;
	}
	sizes = &m->g->val[s->sizes];
	if (sizes->shape.rank == 0 && imp_const(m, 1, &chunk)) {
		s->part.PART.chunk = chunk;
		s->sizes = 0;
	} else if (sizes->shape.rank == 1 && sizes->shape.dim[0] > 0) {
		s->part.PART.count = sizes->shape.dim[0];
	}
	return true;
}

bool
run_sequence_construct(struct importer *m)
{
	struct sequence *s = new_sequence(m);

	s->n = m->n->nin;
	s->elem = arena_array(m->arena, (size_t)s->n + 1, sizeof *s->elem);
	for (int i = 0; i < s->n; i++)
		s->elem[i] = imp_in(m, i);
	return true;
}

bool
run_sequence_empty(struct importer *m)
{
	attr_int(&m->r, "dtype", 1);
	new_sequence(m);
	return true;
}

/* One element more or one less: the list with a piece replaced. */
static bool
edit_sequence(struct importer *m, int position, bool insert)
{
	const struct sequence *s = in_sequence(m);
	struct sequence *y;
	int64_t at;

	if (!s)
		return false;
	if (s->split)
		return imp_fail(m, "not supported on the result of "
		                "SplitToSequence");
	at = insert ? s->n : s->n - 1;
	if (imp_has(m, position)) {
		if (!imp_const(m, position, &at))
			return imp_fail(m, "the position is not a constant");
		at += at < 0 ? s->n : 0;
	}
	if (at < 0 || at >= s->n + insert)
		return imp_fail(m, "position %jd in a sequence of %d",
		                (intmax_t)at, s->n);
	y = new_sequence(m);
	y->n = insert ? s->n + 1 : s->n - 1;
	y->elem = arena_array(m->arena, (size_t)y->n + 1, sizeof *y->elem);
	for (int i = 0; i < y->n; i++)
		y->elem[i] = i < at ? s->elem[i]
			: !insert ? s->elem[i + 1]
			: i > at ? s->elem[i - 1] : imp_in(m, 1);
	return true;
}

bool
run_sequence_insert(struct importer *m)
{
	return edit_sequence(m, 2, true);
}

bool
run_sequence_erase(struct importer *m)
{
	return edit_sequence(m, 1, false);
}

bool
run_sequence_at(struct importer *m)
{
	const struct sequence *s = in_sequence(m);
	int64_t at, n;
	Attr a;

	if (!s)
		return false;
	if (!imp_const(m, 1, &at))
		return imp_fail(m, "the position is not a constant");
	n = s->split ? s->part.PART.count : s->n;
	if (at < 0 && n > 0)
		at += n;
	if (at < 0 || (n > 0 && at >= n))
		return imp_fail(m, "position %jd in a sequence of %jd",
		                (intmax_t)at, (intmax_t)n);
	if (!s->split)
		return give(m, s->elem[at]);
	a = s->part;
	a.PART.index = at;
	return give(m, EMIT_NODE(m, OP_PART, &a, s->x, s->sizes));
}

bool
run_concat_from_sequence(struct importer *m)
{
	const struct sequence *s = in_sequence(m);
	bool fresh = attr_int(&m->r, "new_axis", 0) != 0;
	int64_t axis = attr_int(&m->r, "axis", 0);
	ValId *in;

	if (!s)
		return false;
	if (!s->split && s->n == 0)
		return imp_fail(m, "the sequence is empty");
	if (s->split)
		return imp_fail(m, "not supported on the result of "
		                "SplitToSequence");
	in = arena_array(m->arena, (size_t)s->n + 1, sizeof *in);
	for (int i = 0; i < s->n; i++)
		in[i] = fresh ? imp_unsqueeze(m, s->elem[i], axis) : s->elem[i];
	return give(m, imp_concat(m, axis, s->n, in));
}

bool
run_sequence_length(struct importer *m)
{
	const struct sequence *s = in_sequence(m);

	if (!s)
		return false;
	if (s->split && s->part.PART.count == 0)
		return imp_fail(m, "the length of the sequence is not known");
	return give(m, imp_scalar(m, s->split ? s->part.PART.count : s->n));
}
