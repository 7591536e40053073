/* The textual form of a graph: values, their types and marks, and contents. */
#include "ir/text/parser.h"
#include "ir/element.h"
#include "ir/placement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that `splat` may ask for. */
enum { CONTENTS_MAX = 1 << 28 };

DType
parse_find_type(const char *text)
{
	for (int i = DT_NONE + 1; i < DT_COUNT; i++)
		if (strcmp(dtype_info[i].text, text) == 0)
			return (DType)i;
	return DT_NONE;
}

bool
parse_dtype(struct parser *p, DType *dt)
{
	*dt = DT_NONE;
	if (tok_accept(p, '?'))
		return true;
	if (p->tok == T_WORD)
		*dt = parse_find_type(p->text);
	if (*dt == DT_NONE)
		return tok_expected(p, "an element type");
	tok_next(p);
	return true;
}

static bool
read_dim_extent(struct parser *p, Val *v, int i)
{
	v->shape.dim[i] = -1;
	if (tok_accept(p, '?'))
		return true;
	if (p->tok == T_WORD && strchr("0123456789+-.", *p->text))
		return tok_int(p, 0, "an extent", &v->shape.dim[i]);
	if (p->tok != T_WORD && p->tok != T_STRING)
		return tok_expected(p, "an extent");
	v->dim_name[i] = arena_str(p->g->arena, p->text);
	tok_next(p);
	return !tok_accept(p, '=')
	       || tok_int(p, 0, "an extent", &v->shape.dim[i]);
}

static bool
read_type(struct parser *p, Val *v)
{
	if (!parse_dtype(p, &v->dt))
		return false;
	if (!tok_accept(p, '['))
		return true;
	if (tok_accept(p, '*'))
		return tok_expect(p, ']');
	v->shape.rank = 0;
	while (!tok_is(p, ']')) {
		if (v->shape.rank == MAX_RANK)
			return tok_fault(p, "rank above %d is not supported",
				MAX_RANK);
		if ((v->shape.rank && !tok_expect(p, ','))
		    || !read_dim_extent(p, v, v->shape.rank))
			return false;
		v->shape.rank++;
	}
	return tok_expect(p, ']');
}

bool
parse_mention(struct parser *p, ValId v, NodeId node, int field)
{
	struct mention m = { v, node, field, NULL, p->line };
	char *name;

	if (!tok_text(p, T_VAL, "a value", &name))
		return false;
	m.name = name;
	p->mention = arena_grow(p->tmp, p->mention, p->nmention,
	                        &p->mention_cap, p->nmention + 1,
	                        sizeof *p->mention);
	p->mention[p->nmention++] = m;
	return true;
}

static bool
read_axis(struct parser *p, int *axis)
{
	int64_t n;

	if (!tok_int(p, 0, "an axis", &n))
		return false;
	if (n >= MAX_RANK)
		return tok_fault(p, "axis %lld is out of range", (long long)n);
	*axis = (int)n;
	return true;
}

static bool
read_placement(struct parser *p, Placement *s)
{
	IntList segments;

	if (tok_word(p, "replicate_partial") || tok_word(p, "r"))
		s->kind = PLACEMENT_REPLICATE_PARTIAL;
	else if (tok_word(p, "partial") || tok_word(p, "p"))
		s->kind = PLACEMENT_PARTIAL;
	if (s->kind != PLACEMENT_REPLICATE)
		return true;
	s->kind = PLACEMENT_SHARD;
	s->replication = 1;
	if (!read_axis(p, &s->axis) || !tok_list(p, 0, &segments))
		return false;
	s->first_axis = s->axis;
	s->nsegment = segments.n;
	memcpy(s->segment, segments.v, sizeof s->segment);
	return (!tok_word(p, "from") || read_axis(p, &s->first_axis))
		&& ((!tok_word(p, "replication") && !tok_word(p, "shared"))
		    || tok_int(p, 1, "ranks", &s->replication));
}

static bool
read_shard_clause(struct parser *p, Val *v)
{
	struct replica_shard *of = arena_alloc(p->g->arena, sizeof *of);
	IntList l;

	if (!tok_list(p, 1, &l))
		return false;
	*of = (struct replica_shard){ .shape.rank = l.n };
	memcpy(of->shape.dim, l.v, sizeof l.v);
	of->rows = tok_word(p, "rows");
	v->shard = of;
	return (!tok_word(p, "whole_placement") && !tok_word(p, "cut"))
		|| read_placement(p, &of->placement);
}

static bool
read_onnx(struct parser *p, Val *v)
{
	v->onnx = v->name;
	if (p->tok == T_STRING) {
		v->onnx = arena_str(p->g->arena, p->text);
		tok_next(p);
	}
	return true;
}

static bool
read_state(struct parser *p, Val *v)
{
	if (p->tok != T_WORD && p->tok != T_STRING)
		return tok_expected(p, "a state's name");
	v->state = arena_str(p->g->arena, p->text);
	tok_next(p);
	return true;
}

static bool
read_strides(struct parser *p, Val *v)
{
	IntList l;

	if (!tok_list(p, INT64_MIN, &l))
		return false;
	v->laid_out = true;
	for (int i = 0; i < l.n; i++)
		v->stride[i] = l.v[i];
	return true;
}

static bool
read_flag(struct parser *p, const char *word, bool *flag)
{
	if (!tok_word(p, word))
		return false;
	*flag = true;
	return true;
}

/* All marks of value id.  No value is added meanwhile. */
static bool
read_marks(struct parser *p, ValId id)
{
	Val *v = &p->g->val[id];
	bool strided = false;

	for (;;) {
		bool ok = true;

		if (read_flag(p, "output", &v->output)
		    || read_flag(p, "frozen", &v->frozen)
		    || read_flag(p, "resident", &v->resident)
		    || read_flag(p, "host", &v->host))
			continue;
		if (tok_word(p, "onnx")) {
			ok = read_onnx(p, v);
		} else if (tok_word(p, "batch")) {
			ok = read_axis(p, &v->batch);
			v->batch++;
		} else if (tok_word(p, "of")) {
			ok = parse_mention(p, id, 0, M_OF);
		} else if (tok_word(p, "low_precision")
		           || tok_word(p, "half")) {
			ok = parse_mention(p, id, 0, M_LOW_PRECISION);
		} else if (tok_word(p, "param")) {
			ok = parse_mention(p, id, 0, M_PARAM);
		} else if (tok_word(p, "adjoint")) {
			ok = parse_mention(p, id, 0, M_ADJOINT);
		} else if (tok_word(p, "state")) {
			ok = read_state(p, v);
		} else if (tok_word(p, "placement") || tok_word(p, "split")) {
			ok = read_placement(p, &v->placement);
		} else if (tok_word(p, "shard") || tok_word(p, "piece")) {
			ok = read_shard_clause(p, v);
		} else if (tok_word(p, "strides")) {
			ok = read_strides(p, v);
			strided = true;
		} else if (tok_word(p, "start")) {
			ok = tok_int(p, INT64_MIN, "a start", &v->start);
		} else if (tok_word(p, "in")) {
			v->laid_out = true;
			ok = parse_mention(p, id, 0, M_IN);
		} else if (tok_word(p, "bytes")) {
			v->laid_out = true;
			ok = tok_int(p, 0, "bytes", &v->nbytes);
		} else if (tok_word(p, "at")) {
			ok = tok_int(p, 0, "an offset", &v->offset);
		} else {
			break;
		}
		if (!ok)
			return false;
	}
	if (v->laid_out && !strided) {
		if (!shape_known(&v->shape))
			return tok_fault(p, "expected a type or strides for "
				"the layout");
		shape_strides(&v->shape, v->stride);
	}
	return true;
}

ValId
parse_decl(struct parser *p, ValKind kind)
{
	char *name;
	ValId v;

	if (!tok_text(p, T_VAL, "a value", &name))
		return 0;
	if (!*name || val_find(p->g, name)) {
		tok_fault(p, *name ? "'%s' is declared twice" : "missing "
		          "name%s", name);
		return 0;
	}
	v = val_new(p->g, kind, name, DT_NONE, (Shape){ .rank = -1 });
	if ((tok_accept(p, ':') && !read_type(p, &p->g->val[v]))
	    || !read_marks(p, v))
		return 0;
	return v;
}

/* ---- contents ---- */

static bool
parse_float_element(const char *word, DType dt, unsigned char *to)
{
	char *rest;
	double x = strtod(word, &rest);

	if (!*word || *rest)
		return false;
	element_set_float(dt, to, 0, x);
	return true;
}

static bool
parse_int_element(const char *word, DType dt, unsigned char *to)
{
	int bits = 8 * dtype_info[dt].nbytes;
	bool is_signed = dtype_info[dt].cls == 'i';
	uint64_t u;
	char *rest;

	errno = 0;
	if (is_signed) {
		int64_t i = strtoll(word, &rest, 10);

		if (bits < 64 && (i < -(INT64_C(1) << (bits - 1))
		                  || i >= INT64_C(1) << (bits - 1)))
			return false;
		u = (uint64_t)i;
	} else {
		u = strtoull(word, &rest, 10);
		if (*word == '-' || (bits < 64 && u >> bits)
		    || (dt == DT_BOOL && u > 1))
			return false;
	}
	if (!*word || *rest || errno)
		return false;
	/* little-endian hosts only, as everywhere in ckc */
	memcpy(to, &u, (size_t)bits / 8);
	return true;
}

static bool
read_element(struct parser *p, DType dt, unsigned char *to)
{
	bool ok = p->tok == T_WORD;

	if (ok && dtype_info[dt].cls == 'f')
		ok = parse_float_element(p->text, dt, to);
	else if (ok)
		ok = parse_int_element(p->text, dt, to);
	if (!ok) {
		char what[32];

		snprintf(what, sizeof what, "a number of type %s",
		         dtype_info[dt].text);
		return tok_expected(p, what);
	}
	tok_next(p);
	return true;
}

static bool
read_elements(struct parser *p, Val *v, int64_t n)
{
	size_t size = (size_t)dtype_info[v->dt].nbytes;
	unsigned char *data;
	int64_t i = 0;

	/* an element takes two bytes of text at least */
	if (n > p->end - p->at)
		return tok_fault(p, "expected %lld elements", (long long)n);
	data = arena_array(p->g->arena, (size_t)n + 1, size);
	tok_skip_lines(p);
	while (!tok_is(p, '}')) {
		if (i && !tok_expect(p, ','))
			return false;
		tok_skip_lines(p);
		if (i == n)
			return tok_fault(p, "expected at most %lld elements",
			                 (long long)n);
		if (!read_element(p, v->dt, data + (size_t)i * size))
			return false;
		tok_skip_lines(p);
		i++;
	}
	if (i != n)
		return tok_fault(p, "expected %lld elements, found %lld",
		                 (long long)n, (long long)i);
	v->data = data;
	return tok_expect(p, '}');
}

static bool
read_hex(struct parser *p, Val *v, int64_t nbytes)
{
	unsigned char *data;

	if (p->tok != T_STRING)
		return tok_expected(p, "bytes in hexadecimal");
	if (nbytes > CONTENTS_MAX || strlen(p->text) != 2 * (size_t)nbytes)
		return tok_fault(p, "expected %lld bytes", (long long)nbytes);
	data = arena_alloc(p->g->arena, (size_t)nbytes + 1);
	for (int64_t i = 0; i < nbytes; i++) {
		int high = tok_hex_digit(p->text[2 * i]);
		int low = tok_hex_digit(p->text[2 * i + 1]);

		if (high < 0 || low < 0)
			return tok_fault(p, "expected hexadecimal digits");
		data[i] = (unsigned char)(high << 4 | low);
	}
	v->data = data;
	tok_next(p);
	return true;
}

static bool
read_splat(struct parser *p, Val *v, int64_t nbytes)
{
	size_t size = (size_t)dtype_info[v->dt].nbytes;
	unsigned char one[8], *data;

	if (nbytes > CONTENTS_MAX)
		return tok_fault(p, "contents of %lld bytes are too large",
		                 (long long)nbytes);
	if (!read_element(p, v->dt, one))
		return false;
	data = arena_alloc(p->g->arena, (size_t)nbytes + 1);
	for (size_t i = 0; i < (size_t)nbytes; i += size)
		memcpy(data + i, one, size);
	v->data = data;
	return true;
}

bool
parse_contents(struct parser *p, Val *v)
{
	Val whole = *v;
	int64_t nbytes;

	whole.shape = val_whole(v);
	nbytes = val_data_bytes(&whole);
	if (tok_word(p, "..."))
		return true;
	if (nbytes < 0)
		return tok_fault(p, "contents need a known type and shape");
	if (val_is_blocks(v) && !tok_is_word(p, "hex"))
		return tok_expected(p, "hex or ... for blocks");
	if (tok_accept(p, '{'))
		return read_elements(p, v, val_nelem(&whole));
	if (tok_word(p, "splat"))
		return read_splat(p, v, nbytes);
	if (tok_word(p, "hex"))
		return read_hex(p, v, nbytes);
	return tok_expected(p, "{, splat, hex or ...");
}
