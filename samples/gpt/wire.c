#include "wire.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { OPSET = 20, IR_VERSION = 9 };
enum { DT_FLOAT = 1, DT_INT64 = 7, DT_BOOL = 9 };
enum { A_FLOAT = 1, A_INT, A_STRING, A_TENSOR, A_INTS = 7 };
enum { CHUNK = 1 << 16 };

struct name
name_of(const char *fmt, ...)
{
	struct name n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n.s, sizeof n.s, fmt, ap);
	va_end(ap);
	return n;
}

/* ---- wire ---- */

static bool
reserve(struct buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 256;
	uint8_t *p;

	while (cap - b->n < more)
		cap *= 2;
	if (cap == b->cap)
		return true;
	p = realloc(b->p, cap);
	if (!p)
		return false;
	b->p = p;
	b->cap = cap;
	return true;
}

static void
put_raw(struct model *m, struct buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	if (m->failed || !reserve(b, n)) {
		m->failed = true;
		return;
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void
put_varint(struct model *m, struct buf *b, uint64_t x)
{
	uint8_t byte[10];
	size_t n = 0;

	for (; x > 127; x >>= 7)
		byte[n++] = (uint8_t)(x | 128);
	byte[n++] = (uint8_t)x;
	put_raw(m, b, byte, n);
}

static void
put_int(struct model *m, struct buf *b, int field, int64_t x)
{
	put_varint(m, b, (uint64_t)field << 3);
	put_varint(m, b, (uint64_t)x);
}

static void
put_bytes(struct model *m, struct buf *b, int field, const void *p, size_t n)
{
	put_varint(m, b, (uint64_t)field << 3 | 2);
	put_varint(m, b, n);
	put_raw(m, b, p, n);
}

static void
put_str(struct model *m, struct buf *b, int field, const char *s)
{
	put_bytes(m, b, field, s, strlen(s));
}

/* A message inside another; its buffer is given back. */
static void
put_msg(struct model *m, struct buf *b, int field, struct buf *msg)
{
	put_bytes(m, b, field, msg->p, msg->n);
	free(msg->p);
	*msg = (struct buf){ 0 };
}

/* ---- attributes ---- */

static void
attr_end(struct model *m, struct buf *a, int type)
{
	put_int(m, a, 20, type);
	put_msg(m, &m->attr, 5, a);
}

void
attr_int(struct model *m, const char *name, int64_t x)
{
	struct buf a = { 0 };

	put_str(m, &a, 1, name);
	put_int(m, &a, 3, x);
	attr_end(m, &a, A_INT);
}

void
attr_str(struct model *m, const char *name, const char *s)
{
	struct buf a = { 0 };

	put_str(m, &a, 1, name);
	put_str(m, &a, 4, s);
	attr_end(m, &a, A_STRING);
}

void
attr_float(struct model *m, const char *name, float x)
{
	struct buf a = { 0 };

	put_str(m, &a, 1, name);
	put_varint(m, &a, 2 << 3 | 5);
	put_raw(m, &a, &x, sizeof x);
	attr_end(m, &a, A_FLOAT);
}

void
attr_ints(struct model *m, const char *name, int n, const int64_t *x)
{
	struct buf a = { 0 };

	put_str(m, &a, 1, name);
	for (int i = 0; i < n; i++)
		put_int(m, &a, 8, x[i]);
	attr_end(m, &a, A_INTS);
}

/* ---- nodes ---- */

static void
end_node(struct model *m, struct buf *n, const char *name, const char *type)
{
	put_str(m, n, 3, name);
	put_str(m, n, 4, type);
	put_raw(m, n, m->attr.p, m->attr.n);
	m->attr.n = 0;
	put_msg(m, &m->node, 1, n);
}

struct name
op(struct model *m, const char *type, struct name out, ...)
{
	struct buf n = { 0 };
	const char *in;
	va_list ap;

	va_start(ap, out);
	while ((in = va_arg(ap, const char *)))
		put_str(m, &n, 1, in);
	va_end(ap);
	put_str(m, &n, 2, out.s);
	end_node(m, &n, out.s, type);
	return out;
}

void
op_split(struct model *m, struct name out, const char *in, int64_t axis, int n)
{
	struct buf b = { 0 };

	put_str(m, &b, 1, in);
	for (int i = 0; i < n; i++)
		put_str(m, &b, 2, name_of("%.80s.%d", out.s, i).s);
	attr_int(m, "axis", axis);
	attr_int(m, "num_outputs", n);
	end_node(m, &b, out.s, "Split");
}

/* ---- constants: Constant nodes, so that no reader takes them for weights --*/

static struct name
constant(struct model *m, int type, int rank, int64_t n, const void *p,
         size_t size)
{
	struct buf t = { 0 }, a = { 0 }, waiting = m->attr;
	struct name y;

	m->attr = (struct buf){ 0 };
	if (rank)
		put_int(m, &t, 1, n);
	put_int(m, &t, 2, type);
	put_bytes(m, &t, 9, p, size);
	put_str(m, &a, 1, "value");
	put_msg(m, &a, 5, &t);
	attr_end(m, &a, A_TENSOR);
	y = op(m, "Constant", name_of("const.%d", m->nconst++), NULL);
	free(m->attr.p);
	m->attr = waiting;
	return y;
}

struct name
const_ints(struct model *m, int n, const int64_t *x)
{
	return constant(m, DT_INT64, 1, n, x, (size_t)n * sizeof *x);
}

struct name
const_int(struct model *m, int64_t x)
{
	return constant(m, DT_INT64, 0, 1, &x, sizeof x);
}

struct name
const_float(struct model *m, float x)
{
	return constant(m, DT_FLOAT, 0, 1, &x, sizeof x);
}

struct name
const_true(struct model *m)
{
	return constant(m, DT_BOOL, 0, 1, "\1", 1);
}

/* ---- weights ---- */

static uint64_t
next_random(struct model *m)
{
	uint64_t z = m->seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* The sum of four uniform numbers, scaled to deviation 1. */
static float
normal(struct model *m)
{
	uint64_t z = next_random(m);
	double sum = 0;

	for (int i = 0; i < 4; i++, z >>= 16)
		sum += ((double)(z & 0xffff) + 0.5) / 65536 - 0.5;
	return (float)(sum * sqrt(3));
}

static void
write_weight(struct model *m, int64_t n, float mean, float deviation)
{
	static float chunk[CHUNK];

	while (n > 0) {
		size_t k = n < CHUNK ? (size_t)n : CHUNK;

		for (size_t i = 0; i < k; i++)
			chunk[i] = deviation == 0 ? mean
				: mean + deviation * normal(m);
		if (fwrite(chunk, sizeof *chunk, k, m->data) != k)
			m->failed = true;
		n -= (int64_t)k;
	}
}

static void
external(struct model *m, struct buf *t, const char *key, const char *value)
{
	struct buf e = { 0 };

	put_str(m, &e, 1, key);
	put_str(m, &e, 2, value);
	put_msg(m, t, 13, &e);
}

struct name
weight(struct model *m, struct name name, int rank, const int64_t *dim,
       float mean, float deviation)
{
	struct buf t = { 0 };
	int64_t n = 1;

	for (int i = 0; i < rank; i++) {
		put_int(m, &t, 1, dim[i]);
		n *= dim[i];
	}
	put_int(m, &t, 2, DT_FLOAT);
	put_str(m, &t, 8, name.s);
	external(m, &t, "location", m->location);
	external(m, &t, "offset", name_of("%lld", (long long)m->offset).s);
	external(m, &t, "length", name_of("%lld", (long long)n * 4).s);
	put_int(m, &t, 14, 1);
	put_msg(m, &m->init, 5, &t);
	if (m->data)
		write_weight(m, n, mean, deviation);
	m->offset += n * 4;
	m->nparam += n;
	return name;
}

/* ---- the file ---- */

static void
value_info(struct model *m, struct buf *to, int field, const char *name,
           int type, int rank, const int64_t *dim)
{
	struct buf shape = { 0 }, tensor = { 0 }, t = { 0 }, v = { 0 };

	for (int i = 0; i < rank; i++) {
		struct buf d = { 0 };

		put_int(m, &d, 1, dim[i]);
		put_msg(m, &shape, 1, &d);
	}
	put_int(m, &tensor, 1, type);
	put_msg(m, &tensor, 2, &shape);
	put_msg(m, &t, 1, &tensor);
	put_str(m, &v, 1, name);
	put_msg(m, &v, 2, &t);
	put_msg(m, to, field, &v);
}

void
graph_input(struct model *m, const char *name, int rank, const int64_t *dim)
{
	value_info(m, &m->input, 11, name, DT_INT64, rank, dim);
}

void
graph_output(struct model *m, const char *name)
{
	value_info(m, &m->output, 12, name, DT_FLOAT, 0, NULL);
}

bool
model_write(struct model *m, const char *graph, FILE *out)
{
	struct buf g = { 0 }, opset = { 0 }, file = { 0 };
	struct buf *part[] = { &m->node, &m->init, &m->input, &m->output };

	put_str(m, &g, 2, graph);
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		put_raw(m, &g, part[i]->p, part[i]->n);
		free(part[i]->p);
	}
	free(m->attr.p);
	put_str(m, &opset, 1, "");
	put_int(m, &opset, 2, OPSET);
	put_int(m, &file, 1, IR_VERSION);
	put_str(m, &file, 2, "gpt");
	put_msg(m, &file, 7, &g);
	put_msg(m, &file, 8, &opset);
	if (!m->failed && fwrite(file.p, 1, file.n, out) != file.n)
		m->failed = true;
	free(file.p);
	return !m->failed;
}
