/* Copies between planes of channels, as tensors have them, and blocks of
 * channels, as libraries of convolutions want them: [block][position][channel
 * of the block]; and the part of a convolution that one task computes.
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

/* Transpose CKR_BLOCK rows of CKR_BLOCK floats; rows `have`.. are zeros. */
static inline void
ckr_turn(float *to, int64_t to_step, const float *from, int64_t from_step,
         int64_t have)
{
	ckr_strip v[CKR_BLOCK];

#pragma GCC unroll 16
	for (int i = 0; i < CKR_BLOCK; i++)
		v[i] = i < have ? *(const ckr_strip *)(from + i * from_step)
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
#pragma GCC unroll 16
	for (int i = 0; i < CKR_BLOCK; i++)
		*(ckr_strip *)(to + i * to_step) = v[i];
}

/* ---- copies between planes of channels and blocks ---- */

enum { CKR_SQUARE = CKR_BLOCK * CKR_BLOCK };

/* Channels of a block, given those that are left. */
static inline int64_t
ckr_filled(int64_t left)
{
	return left < 0 ? 0 : left < CKR_BLOCK ? left : CKR_BLOCK;
}

/* n positions of `have` channels, `plane` apart; nothing from `end` on is
 * read. */
static inline void
ckr_pack(float *to, const float *from, int64_t plane, int64_t n, int64_t have,
         const float *end)
{
	float square[CKR_SQUARE];
	int64_t i;

	for (i = 0; i + CKR_BLOCK <= n; i += CKR_BLOCK)
		ckr_turn(to + i * CKR_BLOCK, CKR_BLOCK, from + i, plane, have);
	if (i == n)
		return;
	if (n >= CKR_BLOCK) {
		i = n - CKR_BLOCK;
		ckr_turn(to + i * CKR_BLOCK, CKR_BLOCK, from + i, plane, have);
		return;
	}
	if (end - from >= (have - 1) * plane + CKR_BLOCK) {
		ckr_turn(square, CKR_BLOCK, from, plane, have);
		memcpy(to, square, (size_t)n * CKR_BLOCK * sizeof *to);
		return;
	}
	for (i = 0; i < n; i++)
		for (int64_t c = 0; c < CKR_BLOCK; c++)
			to[i * CKR_BLOCK + c] =
				c < have ? from[c * plane + i] : 0.0f;
}

/* The reverse; `from` may be read up to a square beyond n. */
static inline void
ckr_unpack(float *to, int64_t plane, const float *from, int64_t n,
           int64_t have)
{
	float square[CKR_SQUARE];

	for (int64_t i = 0; i < n; i += CKR_BLOCK) {
		int64_t len = n - i < CKR_BLOCK ? n - i : CKR_BLOCK;

		if (len == CKR_BLOCK && have == CKR_BLOCK) {
			ckr_turn(to + i, plane, from + i * CKR_BLOCK,
			         CKR_BLOCK, CKR_BLOCK);
			continue;
		}
		ckr_turn(square, CKR_BLOCK, from + i * CKR_BLOCK, CKR_BLOCK,
		         CKR_BLOCK);
		for (int64_t c = 0; c < have; c++)
			memcpy(to + c * plane + i, square + c * CKR_BLOCK,
			       (size_t)len * sizeof *to);
	}
}

static inline void
ckr_add_bias(float *y, const float *bias, int64_t n, int64_t have)
{
	float add[CKR_BLOCK] = { 0 };

	for (int64_t c = 0; c < have; c++)
		add[c] = bias[c];
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
ckr_pack_row(float *to, const float *from, int64_t plane, int64_t have,
             const struct ckr_reach *w, int64_t width, const float *end)
{
	ckr_zero(to, w->lo * CKR_BLOCK);
	to += w->lo * CKR_BLOCK;
	from += w->first + w->lo * w->step;
	if (w->step == 1)
		ckr_pack(to, from, plane, w->hi - w->lo, have, end);
	else
		for (int64_t i = 0; i < w->hi - w->lo; i++)
			for (int64_t k = 0; k < CKR_BLOCK; k++)
				to[i * CKR_BLOCK + k] = k < have
					? from[k * plane + i * w->step] : 0.0f;
	ckr_zero(to + (w->hi - w->lo) * CKR_BLOCK,
	         (width - w->hi) * CKR_BLOCK);
}

static inline void
ckr_plain_row(float *to, const float *from, const struct ckr_reach *w,
              int64_t width)
{
	ckr_zero(to, w->lo);
	for (int64_t i = w->lo; i < w->hi; i++)
		to[i] = from[w->first + i * w->step];
	ckr_zero(to + w->hi, width - w->hi);
}

/* The part of x under the windows from row `line` on, of one image and
 * group. */
static inline void
ckr_pack_x(const struct ckr_conv *c, const struct ckr_blocks *b, float *to,
           const float *x, int64_t line, const float *end)
{
	struct ckr_reach h = ckr_reach(c, b, 1, line);
	struct ckr_reach w = ckr_reach(c, b, 2, 0);
	int plain = b->cin < CKR_BLOCK;
	int64_t group = plain ? 1 : CKR_BLOCK, row = b->extent[1] * group;
	int whole = b->point && w.step == 1 && h.step == 1 && w.lo == 0 &&
	            w.hi == c->in[2] && w.hi == b->extent[1] && h.lo == 0 &&
	            h.hi == b->extent[0];

	for (int64_t k = 0; k < b->cin; k += group, x += group * c->in_size) {
		int64_t have = ckr_filled(c->cin - k);

		if (whole && !plain) {
			ckr_pack(to, x + h.first * c->in[2], c->in_size,
			         b->extent[0] * b->extent[1], have, end);
			to += b->extent[0] * row;
			continue;
		}
		for (int64_t r = 0; r < b->extent[0]; r++, to += row) {
			const float *from = x;

			if (r < h.lo || r >= h.hi) {
				ckr_zero(to, row);
				continue;
			}
			from += (h.first + r * h.step) * c->in[2];
			if (plain)
				ckr_plain_row(to, from, &w, b->extent[1]);
			else
				ckr_pack_row(to, from, c->in_size, have, &w,
				             b->extent[1], end);
		}
	}
}

/* Lines line..line+lines-1 of dy, those before `from` and beyond the last as
 * zeros, of `channels` channels from the first one on, of one image and
 * group. */
static inline void
ckr_pack_dy(const struct ckr_conv *c, const struct ckr_blocks *b, float *to,
            const float *dy, int64_t first, int64_t channels, int64_t line,
            int64_t from, const float *end)
{
	int64_t w = c->out[2], last = line + b->lines;

	from = from < line ? line : from;
	last = last > c->out[1] ? c->out[1] : last;
	last = last < from ? from : last;
	dy += first * c->out_size;
	for (int64_t k = 0; k < channels; k += CKR_BLOCK) {
		int64_t have = ckr_filled(c->cout - first - k);

		ckr_zero(to, (from - line) * w * CKR_BLOCK);
		to += (from - line) * w * CKR_BLOCK;
		ckr_pack(to, dy + k * c->out_size + from * w, c->out_size,
		         (last - from) * w, have, end);
		to += (last - from) * w * CKR_BLOCK;
		ckr_zero(to, (line + b->lines - last) * w * CKR_BLOCK);
		to += (line + b->lines - last) * w * CKR_BLOCK;
	}
}

/* ---- weights ---- */

/* A square for every tap; outputs in rows, or inputs. */
static inline void
ckr_pack_weights(const struct ckr_conv *c, float *to, const float *w,
                 int64_t o, int64_t i, int by_output)
{
	int64_t outs = c->cout - o, ins = c->cin - i, row = c->cin * c->taps;

	w += o * row + i * c->taps;
	outs = outs > CKR_BLOCK ? CKR_BLOCK : outs;
	ins = ins > CKR_BLOCK ? CKR_BLOCK : ins;
	if (c->taps == 1 && ins == CKR_BLOCK && !by_output) {
		ckr_turn(to, CKR_BLOCK, w, row, outs);
		return;
	}
	if (outs < CKR_BLOCK || ins < CKR_BLOCK)
		ckr_zero(to, c->taps * CKR_SQUARE);
	for (int64_t k = 0; k < outs; k++)
		for (int64_t m = 0; m < ins; m++)
			for (int64_t t = 0; t < c->taps; t++)
				to[t * CKR_SQUARE + (by_output
					? k * CKR_BLOCK + m
					: m * CKR_BLOCK + k)] =
					w[k * row + m * c->taps + t];
}

/* Few inputs: [tap][input][output of the block]. */
static inline void
ckr_plain_weights(const struct ckr_conv *c, float *to, const float *w,
                  int64_t o)
{
	for (int64_t t = 0; t < c->taps; t++)
		for (int64_t m = 0; m < c->cin; m++)
			for (int64_t k = 0; k < CKR_BLOCK; k++, to++)
				*to = o + k < c->cout ? w[((o + k) * c->cin +
					m) * c->taps + t] : 0.0f;
}

#endif
