/* ONNX's sequences of tensors.
 *
 * in      operators that make, edit and read a sequence
 * out     values: at import a sequence is a list, or a tensor still to be
 *         split; the graph has no sequences
 */
#include "frontend/import/node_import.h"

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
		imp_fail(m, "sequences are supported only as results of "
		            "SplitToSequence or SequenceConstruct");
	return s;
}

/* Number of pieces of `chunk` elements; -1: unknown. */
static int64_t
count_chunks(struct importer *m, int64_t axis, int64_t chunk)
{
	Shape s = imp_shape(m, 0);
	int64_t dim;

	axis += axis < 0 && s.rank > 0 ? s.rank : 0;
	if (chunk < 1 || axis < 0 || axis >= s.rank)
		return -1;
	dim = s.dim[axis];
	return dim < 0 ? -1 : dim / chunk + (dim % chunk != 0);
}

bool
run_split_to_sequence(struct importer *m)
{
	struct sequence *s = new_sequence(m);
	int64_t keepdims = attr_int(&m->r, "keepdims", 1), chunk = 1;
	int64_t axis = attr_int(&m->r, "axis", 0);
	Shape sizes;

	s->split = true;
	s->n = -1;
	s->x = imp_in(m, 0);
	s->part = attr_default(OP_SPLIT);
	s->part.SPLIT.axis = axis;
	if (!imp_has(m, 1)) {
		s->part.SPLIT.keepdims = keepdims != 0;
	} else if (sizes = imp_shape(m, 1), sizes.rank != 0) {
		s->sizes = imp_in(m, 1);
		if (sizes.rank == 1)
			s->n = sizes.dim[0];
		s->part.SPLIT.count = s->n > 0 ? s->n : 0;
		return true;
	} else if (!imp_const(m, 1, &chunk)) {
		s->sizes = imp_in(m, 1);
		return true;
	}
	s->part.SPLIT.chunk = chunk;
	s->n = count_chunks(m, axis, chunk);
	return true;
}

/* Element i, which exists. */
static ValId
sequence_element(struct importer *m, const struct sequence *s, int64_t i)
{
	Attr a = s->part;

	if (!s->split)
		return s->elem[i];
	a.SPLIT.index = i;
	return EMIT_NODE(m, OP_SPLIT, &a, s->x, s->sizes);
}

static bool
check_length(struct importer *m, const struct sequence *s)
{
	enum { MOST = 1 << 16 };

	if (s->n < 0)
		return imp_fail(m, "the length of the sequence must follow "
		                "from the file and the dimensions set by "
		                "--dim");
	return s->n <= MOST || imp_fail(m, "a sequence of %jd tensors is not "
	                                "supported: expected at most %d",
	                                (intmax_t)s->n, MOST);
}

/* Make s->elem a list of all elements, once per split.  Elements are counted
 * over the whole file, because a few bytes can request any number. */
static bool
list_elements(struct importer *m, struct sequence *s)
{
	enum { MOST = 1 << 20 };
	ValId *elem;

	if (m->elements > MOST || !check_length(m, s))
		return false;           /* already reported */
	m->elements += s->split ? 2 * s->n : s->n;
	if (m->elements > MOST)
		return imp_fail(m, "the sequences of the file need more than "
		                "%d tensors", MOST);
	if (!s->split)
		return true;
	elem = arena_array(m->arena, (size_t)s->n + 1, sizeof *elem);
	for (int64_t i = 0; i < s->n; i++)
		elem[i] = sequence_element(m, s, i);
	s->elem = elem;
	s->split = false;
	return true;
}

/* The position that input i gives in a sequence of n (-1: unknown), which may
 * be one after the last. */
static bool
read_position(struct importer *m, int i, int64_t n, bool behind, int64_t *at)
{
	int64_t given;

	if (!imp_const(m, i, &given))
		return imp_fail(m, "the position must follow from the file and "
		                "the dimensions set by --dim");
	if (given < 0 && n < 0)
		return imp_fail(m, "position %jd counts from the end, but the "
		                "length of the sequence is unknown",
		                (intmax_t)given);
	*at = given + (given < 0 ? n : 0);
	return (*at >= 0 && (n < 0 || *at < n + behind))
		|| imp_fail(m, "position %jd is out of range for a sequence of "
		            "%jd", (intmax_t)given, (intmax_t)n);
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

/* Insert or erase one element: the list with a piece replaced. */
static bool
edit_sequence(struct importer *m, int position, bool insert)
{
	struct sequence *s = in_sequence(m), *y;
	int64_t at;

	if (!s || !list_elements(m, s))
		return false;
	if (!insert && s->n == 0)
		return imp_fail(m, "the sequence is empty");
	/* the default is the end: -1 would insert before the last one */
	at = insert ? s->n : s->n - 1;
	if (imp_has(m, position)
	    && !read_position(m, position, s->n, insert, &at))
		return false;
	y = new_sequence(m);
	y->n = insert ? s->n + 1 : s->n - 1;
	y->elem = arena_array(m->arena, (size_t)y->n + 1, sizeof *y->elem);
	for (int64_t i = 0; i < y->n; i++)
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
	int64_t at;

	return s && read_position(m, 1, s->n, false, &at)
		&& set_output(m, sequence_element(m, s, at));
}

bool
run_concat_from_sequence(struct importer *m)
{
	struct sequence *s = in_sequence(m);
	bool fresh = attr_int(&m->r, "new_axis", 0) != 0;
	int64_t axis = attr_int(&m->r, "axis", 0);
	ValId *in;

	if (!s || !list_elements(m, s))
		return false;
	if (s->n == 0)
		return imp_fail(m, "the sequence is empty");
	in = arena_array(m->arena, (size_t)s->n + 1, sizeof *in);
	for (int64_t i = 0; i < s->n; i++) {
		in[i] = s->elem[i];
		if (fresh)
			in[i] = imp_unsqueeze(m, in[i], axis);
	}
	return set_output(m, imp_concat(m, axis, (int)s->n, in));
}

bool
run_sequence_length(struct importer *m)
{
	const struct sequence *s = in_sequence(m);

	return s && check_length(m, s) && set_output(m, imp_scalar(m, s->n));
}
