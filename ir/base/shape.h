/* Types of elements, and shapes. */
#ifndef IR_BASE_SHAPE_H
#define IR_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_RANK = 8 };

typedef enum {
	DT_NONE,
#define DT(id, text, nbytes, ctype, onnx, st, npy, cls) DT_##id,
#include "runtime/support/dtypes.h"
#undef DT
	DT_COUNT
} DType;

struct dtype_info {
	const char *text, *ctype, *st;
	int nbytes, onnx;
	char cls;                       /* f i u b q */
};
extern const struct dtype_info dtype_info[DT_COUNT];

static inline bool
dtype_is_half(DType dt)
{
	return dt == DT_F16 || dt == DT_BF16;
}

/* Blocks of quantised weights, see support/blocks.h. */
static inline bool
dtype_is_blocks(DType dt)
{
	return dt == DT_INT8X64 || dt == DT_NF4X64;
}

/* rank -1: unknown; an extent of -1: unknown until dims are bound. */
typedef struct {
	int rank;
	int64_t dim[MAX_RANK];
} Shape;

typedef struct {
	int n;
	int64_t v[MAX_RANK];
} IntList;

/* numpy broadcast of b into *a; false if they do not fit. */
bool shape_broadcast(Shape *a, const Shape *b);
bool shape_eq(const Shape *, const Shape *);
bool shape_known(const Shape *);
/* Elements, or -1 if unknown or above 2^62. */
int64_t shape_nelem(const Shape *);
Shape shape_make(int rank, const int64_t *dim);
/* Its extents as an attribute. */
IntList shape_list(const Shape *);
#define SHAPE(...) \
	shape_make((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / 8), \
	           (const int64_t[]){ __VA_ARGS__ })
Shape shape_scalar(void);
/* n along one axis, 1 along all others. */
Shape shape_along(int rank, int axis, int64_t n);
/* The product of the extents of dims first..last-1, all known. */
int64_t shape_span(const Shape *, int first, int last);
/* n times x. */
IntList list_filled(int n, int64_t x);
/* Without the dim that is `back` from the end; the rank is at least that. */
Shape shape_without(Shape, int back);
/* "f32[2,12,32]" into buf (returned). */
char *shape_text(char *buf, size_t size, DType, const Shape *);
/* Contiguous row-major strides. */
void shape_strides(const Shape *, int64_t stride[MAX_RANK]);
/* Strides under shape `to` of what has shape `from` and the strides given;
 * false if no strides can say it.  Both shapes have as many elements. */
bool shape_view(const Shape *from, const int64_t *stride, const Shape *to,
                int64_t out[MAX_RANK]);

static inline bool
mul_ok(int64_t a, int64_t b, int64_t *c)
{
	return !__builtin_mul_overflow(a, b, c);
}

static inline bool
add_ok(int64_t a, int64_t b, int64_t *c)
{
	return !__builtin_add_overflow(a, b, c);
}

#endif
