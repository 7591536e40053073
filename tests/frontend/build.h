/* Writes protobuf messages byte by byte, so that tests can write what no
 * library would.  Buffers are as large as a test needs; overflow asserts. */
#ifndef TESTS_FRONTEND_BUILD_H
#define TESTS_FRONTEND_BUILD_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct buf {
	size_t n;
	unsigned char b[1 << 16];
};

static inline void
put_varint(struct buf *b, uint64_t x)
{
	assert(b->n + 10 < sizeof b->b);
	for (; x >= 0x80; x >>= 7)
		b->b[b->n++] = (unsigned char)(x | 0x80);
	b->b[b->n++] = (unsigned char)x;
}

static inline void
put_int(struct buf *b, unsigned field, int64_t x)
{
	put_varint(b, field << 3);
	put_varint(b, (uint64_t)x);
}

static inline void
put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, n);
	assert(b->n + n < sizeof b->b);
	memcpy(b->b + b->n, p, n);
	b->n += n;
}

static inline void
put_fixed(struct buf *b, unsigned field, float x)
{
	put_varint(b, field << 3 | 5);
	assert(b->n + 4 < sizeof b->b);
	memcpy(b->b + b->n, &x, 4);
	b->n += 4;
}

static inline void
put_str(struct buf *b, unsigned field, const char *s)
{
	put_bytes(b, field, s, strlen(s));
}

static inline void
put_msg(struct buf *b, unsigned field, const struct buf *m)
{
	put_bytes(b, field, m->b, m->n);
}

/* ---- ONNX ---- */

enum { ONNX_FLOAT = 1, ONNX_INT32 = 6, ONNX_INT64 = 7, ONNX_STRING = 8,
       ONNX_BOOL = 9, ONNX_FLOAT16 = 10, ONNX_UINT32 = 12 };

/* Names separated by blanks, "-" for an absent one. */
static inline void
put_names(struct buf *b, unsigned field, const char *names)
{
	while (*names) {
		size_t n = strcspn(names, " ");

		put_bytes(b, field, names, n == 1 && *names == '-' ? 0 : n);
		names += n + (names[n] == ' ');
	}
}

/* attrs: attributes' bytes, or NULL. */
static inline void
put_node(struct buf *graph, const char *op, const char *in, const char *out,
         const struct buf *attrs)
{
	struct buf n = { 0 };

	put_names(&n, 1, in);
	put_names(&n, 2, out);
	put_str(&n, 4, op);
	if (attrs) {
		memcpy(n.b + n.n, attrs->b, attrs->n);
		n.n += attrs->n;
	}
	put_msg(graph, 1, &n);
}

static inline void
attr_put_int(struct buf *attrs, const char *name, int64_t x)
{
	struct buf a = { 0 };

	put_str(&a, 1, name);
	put_int(&a, 3, x);
	put_int(&a, 20, 2);
	put_msg(attrs, 5, &a);
}

static inline void
attr_put_ints(struct buf *attrs, const char *name, int n, const int64_t *x)
{
	struct buf a = { 0 };

	put_str(&a, 1, name);
	for (int i = 0; i < n; i++)
		put_int(&a, 8, x[i]);
	put_int(&a, 20, 7);
	put_msg(attrs, 5, &a);
}

static inline void
attr_put_float(struct buf *attrs, const char *name, float x)
{
	struct buf a = { 0 };

	put_str(&a, 1, name);
	put_fixed(&a, 2, x);
	put_int(&a, 20, 1);
	put_msg(attrs, 5, &a);
}

static inline void
attr_put_msg(struct buf *attrs, const char *name, unsigned field, int type,
             const struct buf *m)
{
	struct buf a = { 0 };

	put_str(&a, 1, name);
	put_msg(&a, field, m);
	put_int(&a, 20, type);
	put_msg(attrs, 5, &a);
}

static inline struct buf
tensor_head(const char *name, int type, int rank, const int64_t *dim)
{
	struct buf t = { 0 };

	for (int i = 0; i < rank; i++)
		put_int(&t, 1, dim[i]);
	put_int(&t, 2, type);
	put_str(&t, 8, name);
	return t;
}

static inline struct buf
tensor_raw(const char *name, int type, int rank, const int64_t *dim,
           const void *p, size_t n)
{
	struct buf t = tensor_head(name, type, rank, dim);

	put_bytes(&t, 9, p, n);
	return t;
}

/* A vector of floats as an initializer. */
static inline void
put_floats(struct buf *graph, const char *name, int n, const float *x)
{
	int64_t dim = n;
	struct buf t = tensor_raw(name, ONNX_FLOAT, 1, &dim, x,
	                          (size_t)n * 4);

	put_msg(graph, 5, &t);
}

static inline void
put_ints(struct buf *graph, const char *name, int n, const int64_t *x)
{
	int64_t dim = n;
	struct buf t = tensor_raw(name, ONNX_INT64, n >= 0, &dim, x,
	                          n < 0 ? 8 : (size_t)n * 8);

	put_msg(graph, 5, &t);
}

/* Input (11) or output (12); extents < 0 are the name "n". */
static inline void
put_value(struct buf *graph, unsigned field, const char *name, int type,
          int rank, const int64_t *dim)
{
	struct buf shape = { 0 }, tensor = { 0 }, tp = { 0 }, v = { 0 };

	for (int i = 0; i < rank; i++) {
		struct buf d = { 0 };

		if (dim[i] < 0)
			put_str(&d, 2, "n");
		else
			put_int(&d, 1, dim[i]);
		put_msg(&shape, 1, &d);
	}
	put_int(&tensor, 1, type);
	put_msg(&tensor, 2, &shape);
	put_msg(&tp, 1, &tensor);
	put_str(&v, 1, name);
	put_msg(&v, 2, &tp);
	put_msg(graph, field, &v);
}

static inline void
put_opset(struct buf *model, unsigned field, const char *domain, int version)
{
	struct buf o = { 0 };

	put_str(&o, 1, domain);
	put_int(&o, 2, version);
	put_msg(model, field, &o);
}

static inline struct buf
model_of(const struct buf *graph, int opset)
{
	struct buf m = { 0 };

	put_int(&m, 1, 10);
	put_opset(&m, 8, "", opset);
	put_msg(&m, 7, graph);
	return m;
}

#endif
