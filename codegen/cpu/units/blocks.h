/* Copies between planes of channels, as tensors have them, and blocks of
 * channels, as libraries of convolutions want them: [block][position][channel
 * of the block]; and the part of a convolution that one task computes.  An
 * element is a float, or a bf16 that is a float on its way.
 */
#ifndef CODEGEN_CPU_UNITS_BLOCKS_H
#define CODEGEN_CPU_UNITS_BLOCKS_H

#include "conv_blocks.h"

#if CKR_BLOCK == 16
#define CKR_EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), \
	f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#else
#define CKR_EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#endif

typedef float ckr_strip __attribute__((vector_size(4 * CKR_BLOCK),
                                       aligned(4), may_alias));
typedef int ckr_lane_index __attribute__((vector_size(4 * CKR_BLOCK)));
typedef uint32_t ckr_strip_bits __attribute__((vector_size(4 * CKR_BLOCK)));
typedef uint16_t ckr_half_strip __attribute__((vector_size(2 * CKR_BLOCK),
                                               aligned(2), may_alias));

/* ---- transposition of a square of lanes (Eklundh, 1972) ---- */

#define CKR_UPPER(s, i) ((i) & (s) ? CKR_BLOCK + (i) - (s) : (i))
#define CKR_LOWER(s, i) ((i) & (s) ? CKR_BLOCK + (i) : (i) + (s))

#ifdef __clang__
#define CKR_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CKR_SHUFFLE(a, b, ...) \
	__builtin_shuffle(a, b, (ckr_lane_index){ __VA_ARGS__ })
#endif
#define CKR_PICK(a, b, f) CKR_SHUFFLE(a, b, CKR_EACH(f))

#define CKR_U1(i) CKR_UPPER(1, i)
#define CKR_U2(i) CKR_UPPER(2, i)
#define CKR_U4(i) CKR_UPPER(4, i)
#define CKR_U8(i) CKR_UPPER(8, i)
#define CKR_L1(i) CKR_LOWER(1, i)
#define CKR_L2(i) CKR_LOWER(2, i)
#define CKR_L4(i) CKR_LOWER(4, i)
#define CKR_L8(i) CKR_LOWER(8, i)

#define CKR_CROSS(v, i, j, s) do { \
	ckr_strip cross_ = v[i]; \
	v[i] = CKR_PICK(cross_, v[j], CKR_U##s); \
	v[j] = CKR_PICK(cross_, v[j], CKR_L##s); \
} while (0)
#define CKR_CROSS1(v, i) CKR_CROSS(v, i, i + 1, 1)
#define CKR_CROSS2(v, i) do { \
	CKR_CROSS(v, i, i + 2, 2); CKR_CROSS(v, i + 1, i + 3, 2); } while (0)
#define CKR_CROSS4(v, i) do { \
	CKR_CROSS(v, i, i + 4, 4); CKR_CROSS(v, i + 1, i + 5, 4); \
	CKR_CROSS(v, i + 2, i + 6, 4); CKR_CROSS(v, i + 3, i + 7, 4); \
} while (0)
#define CKR_TURN8(v, i) do { \
	CKR_CROSS4(v, i); CKR_CROSS2(v, i); CKR_CROSS2(v, i + 4); \
	CKR_CROSS1(v, i); CKR_CROSS1(v, i + 2); CKR_CROSS1(v, i + 4); \
	CKR_CROSS1(v, i + 6); } while (0)

static inline ckr_strip
ckr_widen_strip(const uint16_t *x)
{
	return (ckr_strip)(__builtin_convertvector(
		*(const ckr_half_strip *)x, ckr_strip_bits) << 16);
}

/* Of numbers that are bf16. */
static inline void
ckr_cut_strip(uint16_t *to, ckr_strip v)
{
	*(ckr_half_strip *)to = __builtin_convertvector((ckr_strip_bits)v >> 16,
	                                                ckr_half_strip);
}

/* As ckr_to_bf16(). */
static inline void
ckr_narrow_strip(uint16_t *to, ckr_strip v)
{
	ckr_strip_bits u = (ckr_strip_bits)v, nan = (ckr_strip_bits)(v != v);
	ckr_strip_bits r = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	r = (r & ~nan) | (0x7fff & nan);
	*(ckr_half_strip *)to = __builtin_convertvector(r, ckr_half_strip);
}

/* Transpose CKR_BLOCK rows of as many elements; rows `have`.. are zeros. */
static inline void
ckr_turn(void *to, int to_type, int64_t to_step, const void *from,
         int from_type, int64_t from_step, int64_t have)
{
	ckr_strip v[CKR_BLOCK];

	if (from_type == CKR_F32)
#pragma GCC unroll 16
		for (int i = 0; i < CKR_BLOCK; i++)
			v[i] = i < have ? *(const ckr_strip *)
				((const float *)from + i * from_step)
				: (ckr_strip){ 0 };
	else
#pragma GCC unroll 16
		for (int i = 0; i < CKR_BLOCK; i++)
			v[i] = i < have ? ckr_widen_strip((const uint16_t *)from
			                                  + i * from_step)
				: (ckr_strip){ 0 };
#if CKR_BLOCK == 16
	CKR_CROSS(v, 0, 8, 8);
	CKR_CROSS(v, 1, 9, 8);
	CKR_CROSS(v, 2, 10, 8);
	CKR_CROSS(v, 3, 11, 8);
	CKR_CROSS(v, 4, 12, 8);
	CKR_CROSS(v, 5, 13, 8);
	CKR_CROSS(v, 6, 14, 8);
	CKR_CROSS(v, 7, 15, 8);
	CKR_TURN8(v, 8);
#endif
	CKR_TURN8(v, 0);
	if (to_type == CKR_F32)
#pragma GCC unroll 16
		for (int i = 0; i < CKR_BLOCK; i++)
			*(ckr_strip *)((float *)to + i * to_step) = v[i];
	else if (from_type != CKR_F32)
#pragma GCC unroll 16
		for (int i = 0; i < CKR_BLOCK; i++)
			ckr_cut_strip((uint16_t *)to + i * to_step, v[i]);
	else
#pragma GCC unroll 16
		for (int i = 0; i < CKR_BLOCK; i++)
			ckr_narrow_strip((uint16_t *)to + i * to_step, v[i]);
}

/* ---- copies between planes of channels and blocks ---- */

enum { CKR_SQUARE = CKR_BLOCK * CKR_BLOCK };

/* Channels of a block, given those that are left. */
static inline int64_t
ckr_filled(int64_t left)
{
	return left < 0 ? 0 : left < CKR_BLOCK ? left : CKR_BLOCK;
}

/* n positions, `step` apart, of `have` channels, `plane` apart, one by one. */
static inline void
ckr_pack_each(void *to, const void *from, int type, int64_t plane,
              int64_t step, int64_t n, int64_t have)
{
	if (have < CKR_BLOCK)
		ckr_zeros(to, type, n * CKR_BLOCK);
	for (int64_t k = 0; k < have; k++)
		ckr_copy_elements(ckr_item(to, type, k), CKR_BLOCK,
		                  ckr_item(from, type, k * plane), step,
		                  type, n);
}

/* The same by squares of positions that lie side by side; nothing from `end` on
 * is read. */
static inline void
ckr_pack_steps(void *to, const void *from, int type, int64_t plane,
               int64_t step, int64_t n, int64_t have, const void *end)
{
	int64_t each = (CKR_BLOCK - 1) / step + 1, i = 0;
	int64_t left = ((const char *)end - (const char *)from)
		/ ckr_size(type) - (have - 1) * plane - CKR_BLOCK;
	float square[CKR_SQUARE];

	for (; i < n && i * step <= left; i += each) {
		ckr_turn(square, type, CKR_BLOCK, ckr_item(from, type, i
		         * step), type, plane, have);
		for (int64_t k = 0; k < each && i + k < n; k++)
			memcpy(ckr_item(to, type, (i + k) * CKR_BLOCK),
			       ckr_item(square, type, k * step * CKR_BLOCK),
			       (size_t)(CKR_BLOCK * ckr_size(type)));
	}
	if (i < n)
		ckr_pack_each(ckr_item(to, type, i * CKR_BLOCK),
		              ckr_item(from, type, i * step), type, plane, step,
		              n - i, have);
}

/* n positions of `have` channels, `plane` apart; nothing from `end` on is
 * read. */
static inline void
ckr_pack(void *to, const void *from, int type, int64_t plane, int64_t n,
         int64_t have, const void *end)
{
	float square[CKR_SQUARE];
	int64_t i, left = ((const char *)end - (const char *)from)
		/ ckr_size(type);

	for (i = 0; i + CKR_BLOCK <= n; i += CKR_BLOCK)
		ckr_turn(ckr_item(to, type, i * CKR_BLOCK), type, CKR_BLOCK,
		         ckr_item(from, type, i), type, plane, have);
	if (i == n)
		return;
	if (n >= CKR_BLOCK) {
		i = n - CKR_BLOCK;
		ckr_turn(ckr_item(to, type, i * CKR_BLOCK), type, CKR_BLOCK,
		         ckr_item(from, type, i), type, plane, have);
	} else if (left >= (have - 1) * plane + CKR_BLOCK) {
		ckr_turn(square, type, CKR_BLOCK, from, type, plane, have);
		memcpy(to, square, (size_t)(n * CKR_BLOCK * ckr_size(type)));
	} else {
		ckr_pack_each(to, from, type, plane, 1, n, have);
	}
}

/* The reverse, of floats, to positions `step` apart; `from` may be read up to a
 * square beyond n. */
static inline void
ckr_unpack(void *to, int type, int64_t plane, int64_t step, const float *from,
           int64_t n, int64_t have)
{
	float square[CKR_SQUARE];

	for (int64_t i = 0; i < n; i += CKR_BLOCK) {
		int64_t len = n - i < CKR_BLOCK ? n - i : CKR_BLOCK;

		if (len == CKR_BLOCK && have == CKR_BLOCK && step == 1) {
			ckr_turn(ckr_item(to, type, i), type, plane,
			         from + i * CKR_BLOCK, CKR_F32, CKR_BLOCK,
			         CKR_BLOCK);
			continue;
		}
		ckr_turn(square, type, CKR_BLOCK, from + i * CKR_BLOCK,
		         CKR_F32, CKR_BLOCK, CKR_BLOCK);
		for (int64_t c = 0; c < have; c++)
			ckr_copy_elements(ckr_item(to, type, c * plane + i
			                           * step), step,
			                  ckr_item(square, type, c * CKR_BLOCK),
			                  1, type, len);
	}
}

static inline void
ckr_add_bias(float *y, const void *bias, int type, int64_t n, int64_t have)
{
	float add[CKR_BLOCK] = { 0 };

	ckr_widen(add, bias, type, 0, have);
	for (int64_t i = 0; i < n; i++)
		for (int c = 0; c < CKR_BLOCK; c++)
			y[i * CKR_BLOCK + c] += add[c];
}

/* The range of x that a task reads along one dim: element e of the range is
 * element first + e * step of x, if that exists. */
struct ckr_reach {
	int64_t first, step, lo, hi;    /* elements lo..hi-1 exist */
};

static inline struct ckr_reach
ckr_reach(const struct ckr_conv *c, const struct ckr_blocks *b, int dim,
          int64_t window)
{
	struct ckr_reach r = { window * c->stride[dim] - c->begin[dim],
	                       b->point ? c->stride[dim] : 1, 0, 0 };
	int64_t most = b->extent[dim - 1];

	if (r.first < 0)
		r.lo = (-r.first + r.step - 1) / r.step;
	if (r.first < c->in[dim])
		r.hi = (c->in[dim] - 1 - r.first) / r.step + 1;
	r.hi = r.hi > most ? most : r.hi;
	r.lo = r.lo > r.hi ? r.hi : r.lo;
	return r;
}

/* One row of `have` channels, in blocks. */
static inline void
ckr_pack_row(void *to, const void *from, int type, int64_t plane, int64_t have,
             const struct ckr_reach *w, int64_t width, const void *end)
{
	int64_t n = w->hi - w->lo;
	void *at = ckr_item(to, type, w->lo * CKR_BLOCK);

	from = ckr_item(from, type, w->first + w->lo * w->step);
	ckr_zeros(to, type, w->lo * CKR_BLOCK);
	if (w->step == 1)
		ckr_pack(at, from, type, plane, n, have, end);
	else
		ckr_pack_steps(at, from, type, plane, w->step, n, have, end);
	ckr_zeros(ckr_item(to, type, w->hi * CKR_BLOCK), type,
	          (width - w->hi) * CKR_BLOCK);
}

static inline void
ckr_plain_row(void *to, const void *from, int type, const struct ckr_reach *w,
              int64_t width)
{
	ckr_zeros(to, type, w->lo);
	ckr_copy_elements(ckr_item(to, type, w->lo), 1,
	                  ckr_item(from, type, w->first + w->lo * w->step),
	                  w->step, type, w->hi - w->lo);
	ckr_zeros(ckr_item(to, type, w->hi), type, width - w->hi);
}

/* The part of x under the windows from row `line` on, of one image and
 * group. */
static inline void
ckr_pack_x(const struct ckr_conv *c, const struct ckr_blocks *b, void *to,
           const void *x, int64_t line, const void *end)
{
	int type = c->type;
	struct ckr_reach h = ckr_reach(c, b, 1, line);
	struct ckr_reach w = ckr_reach(c, b, 2, 0);
	int plain = b->cin < CKR_BLOCK;
	int64_t group = plain ? 1 : CKR_BLOCK, row = b->extent[1] * group;
	int whole = b->point && w.step == 1 && h.step == 1 && w.lo == 0 &&
	            w.hi == c->in[2] && w.hi == b->extent[1] && h.lo == 0 &&
	            h.hi == b->extent[0];

	for (int64_t k = 0; k < b->cin; k += group) {
		int64_t have = ckr_filled(c->cin - k);

		if (whole && !plain) {
			ckr_pack(to, ckr_item(x, type, k * c->in_size
			                         + h.first * c->in[2]),
			         type, c->in_size,
			         b->extent[0] * b->extent[1], have, end);
			to = ckr_item(to, type, b->extent[0] * row);
			continue;
		}
		for (int64_t r = 0; r < b->extent[0]; r++) {
			const void *from = ckr_item(x, type, k * c->in_size
				+ (h.first + r * h.step) * c->in[2]);

			if (r < h.lo || r >= h.hi)
				ckr_zeros(to, type, row);
			else if (plain)
				ckr_plain_row(to, from, type, &w,
				              b->extent[1]);
			else
				ckr_pack_row(to, from, type, c->in_size, have,
				             &w, b->extent[1], end);
			to = ckr_item(to, type, row);
		}
	}
}

/* Lines line..line+lines-1 of dy, those before `from` and beyond the last as
 * zeros, of `channels` channels from the first one on, of one image and
 * group. */
static inline void
ckr_pack_dy(const struct ckr_conv *c, const struct ckr_blocks *b, void *to,
            const void *dy, int64_t first, int64_t channels, int64_t line,
            int64_t from, const void *end)
{
	int64_t w = c->out[2], last = line + b->lines, before, n, after;
	int type = c->type;

	from = from < line ? line : from;
	last = last > c->out[1] ? c->out[1] : last;
	last = last < from ? from : last;
	before = (from - line) * w;
	n = (last - from) * w;
	after = (line + b->lines - last) * w;
	for (int64_t k = first; k < first + channels; k += CKR_BLOCK) {
		ckr_zeros(to, type, before * CKR_BLOCK);
		to = ckr_item(to, type, before * CKR_BLOCK);
		ckr_pack(to, ckr_item(dy, type, k * c->out_size + from * w),
		         type, c->out_size, n, ckr_filled(c->cout - k), end);
		to = ckr_item(to, type, n * CKR_BLOCK);
		ckr_zeros(to, type, after * CKR_BLOCK);
		to = ckr_item(to, type, after * CKR_BLOCK);
	}
}

/* ---- weights ---- */

/* Where in a square of weights row r and column k are: bf16 rows lie in pairs,
 * as units for them take them. */
static inline int64_t
ckr_in_square(int type, int64_t r, int64_t k)
{
	return type == CKR_F32 ? r * CKR_BLOCK + k
		: r / 2 * 2 * CKR_BLOCK + 2 * k + r % 2;
}

/* A square for every tap; outputs in rows, or inputs. */
static inline void
ckr_pack_weights(const struct ckr_conv *c, void *to, const void *w,
                 int64_t o, int64_t i, int by_output)
{
	int64_t outs = c->cout - o, ins = c->cin - i, row = c->cin * c->taps;
	int type = c->type;

	w = ckr_item(w, type, o * row + i * c->taps);
	outs = outs > CKR_BLOCK ? CKR_BLOCK : outs;
	ins = ins > CKR_BLOCK ? CKR_BLOCK : ins;
	if (type == CKR_F32 && c->taps == 1 && ins == CKR_BLOCK
	    && !by_output) {
		ckr_turn(to, type, CKR_BLOCK, w, type, row, outs);
		return;
	}
	if (outs < CKR_BLOCK || ins < CKR_BLOCK)
		ckr_zeros(to, type, c->taps * CKR_SQUARE);
	for (int64_t k = 0; k < outs; k++)
		for (int64_t m = 0; m < ins; m++)
			ckr_copy_elements(
				ckr_item(to, type, by_output
				            ? ckr_in_square(type, k, m)
				            : ckr_in_square(type, m, k)),
				CKR_SQUARE,
				ckr_item(w, type, k * row + m * c->taps), 1,
				type, c->taps);
}

/* Inputs of copied weights: those of bf16 lie in pairs. */
static inline int64_t
ckr_weight_inputs(const struct ckr_conv *c, const struct ckr_blocks *b)
{
	return c->type == CKR_F32 ? b->cin : (b->cin + 1) / 2 * 2;
}

/* Few inputs: [tap][input][output of the block], or [tap][pair of inputs]
 * [output of the block][input of the pair]. */
static inline void
ckr_plain_weights(const struct ckr_conv *c, const struct ckr_blocks *b,
                  void *to, const void *w, int64_t o)
{
	int64_t row = c->cin * c->taps, n = ckr_filled(c->cout - o);
	int64_t ins = ckr_weight_inputs(c, b);
	int64_t pair = c->type == CKR_F32 ? 1 : 2;

	ckr_zeros(to, c->type, ins * c->taps * CKR_BLOCK);
	for (int64_t t = 0; t < c->taps; t++)
		for (int64_t m = 0; m < c->cin; m++)
			ckr_copy_elements(
				ckr_item(to, c->type, (t * ins + m / pair
				            * pair) * CKR_BLOCK + m % pair),
				pair, ckr_item(w, c->type, o * row + m * c->taps
				                  + t), row, c->type, n);
}

#endif
