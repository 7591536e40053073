/* Convolutions by a library that wants channels in blocks (env->conv).
 *
 * A task copies its part of the operands into blocks, with the padding written
 * out, has the library compute on one thread, and copies the result back.
 * Weights are copied once, before.  Tasks follow from the shapes alone and no
 * two write to the same place, so results do not depend on the threads.  What
 * the library computes is float32, of bf16 operands too.
 */
#include "conv_blocks.h"
#include "blocks.h"

/* Task i of a loop over parts of `n`; the quotient stays in i. */
static inline int64_t
ckr_digit(int64_t *i, int64_t n)
{
	int64_t d = *i % n;

	*i /= n;
	return d;
}

/* A thread's part of workspace: x, y, w and scratch. */
static inline float *
ckr_own_part(const struct ckr_blocks *b, float *workspace)
{
	return workspace + b->weights
		+ omp_get_thread_num() * (b->x + b->y + b->w + b->scratch);
}

static inline void
ckr_call_blocks(const struct ckr_blocks *b, void *x, void *w, void *y,
                float *own, const struct ckr_env *env)
{
	env->conv(env->convs, omp_get_thread_num(), b->job, x, w, y,
	          own + b->x + b->y + b->w);
}

static inline void
ckr_blocks_task(const struct ckr_conv *c, const struct ckr_blocks *b, void *y,
                const void *x, const void *bias, int64_t task,
                float *workspace, const struct ckr_env *env)
{
	int type = c->type;
	int64_t chunks = b->cout / b->channels;
	int64_t lines = (c->out[1] + b->lines - 1) / b->lines;
	int64_t first = ckr_digit(&task, chunks) * b->channels;
	int64_t from = ckr_digit(&task, lines) * b->lines;
	int64_t g = ckr_digit(&task, c->group), image = task * b->images;
	int64_t last = c->out[1] - b->lines, line = from < last ? from : last;
	int64_t w = c->out[2], each = b->lines * w * CKR_BLOCK;
	const void *end = ckr_item(x, type, c->images * c->group * c->cin
	                              * c->in_size);
	float *in = ckr_own_part(b, workspace), *out = in + b->x;

	for (int64_t i = 0; i < b->images; i++)
		ckr_pack_x(c, b, ckr_item(in, type, i * b->cin
		                             * b->extent[0] * b->extent[1]),
		           ckr_item(x, type, ((image + i) * c->group + g)
		                       * c->cin * c->in_size), line, end);
	ckr_call_blocks(b, in, ckr_item(workspace, type,
	                                   (g * b->cout + first)
	                                   * ckr_weight_inputs(c, b)
	                                   * c->taps), out, in, env);
	for (int64_t i = 0; i < b->images; i++) {
		int64_t to = (((image + i) * c->group + g) * c->cout + first)
			* c->out_size;

		for (int64_t k = 0; k < b->channels; k += CKR_BLOCK) {
			int64_t have = ckr_filled(c->cout - first - k);

			if (bias)
				ckr_add_bias(out, ckr_item(bias, type,
				             g * c->cout + first + k), type,
				             b->lines * w, have);
			if (have > 0)
				ckr_unpack(ckr_item(y, type, to + k
				           * c->out_size + from * w), type,
				           c->out_size, 1, out + (from - line)
				           * w * CKR_BLOCK,
				           (line + b->lines - from) * w, have);
			out += each;
		}
	}
}

void
ckr_blocks_conv(const struct ckr_conv *c, const struct ckr_blocks *b, void *y,
                const void *x, const void *w, const void *bias,
                float *workspace, const struct ckr_env *env)
{
	int type = c->type;
	int64_t size = ckr_weight_inputs(c, b) * c->taps * CKR_BLOCK;
	int64_t tasks = c->images / b->images * c->group *
	                ((c->out[1] + b->lines - 1) / b->lines) *
	                (b->cout / b->channels);

#pragma omp parallel num_threads(env->threads)
	{
#pragma omp for collapse(2)
		for (int64_t g = 0; g < c->group; g++)
			for (int64_t o = 0; o < b->cout; o += CKR_BLOCK) {
				const void *from = ckr_item(w, type,
					g * c->cout * c->cin * c->taps);
				void *to = ckr_item(workspace, type,
					(g * b->cout + o) / CKR_BLOCK * size);

				if (b->cin < CKR_BLOCK)
					ckr_plain_weights(c, b, to, from, o);
				else
					for (int64_t i = 0; i < b->cin;
					     i += CKR_BLOCK)
						ckr_pack_weights(c,
							ckr_item(to, type,
							i * c->taps
							* CKR_BLOCK),
							from, o, i, 0);
			}
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < tasks; i++)
			ckr_blocks_task(c, b, y, x, bias, i, workspace, env);
	}
}

/* Row `row` of a task's part of dx, of one block of channels; -1: no window
 * reaches it. */
static inline void
ckr_unpack_dx(const struct ckr_conv *c, const struct ckr_blocks *b, void *dx,
              const float *from, int64_t row, int64_t have,
              const void *bias)
{
	struct ckr_reach w = ckr_reach(c, b, 2, 0);
	int64_t plane = c->in_size, n = row < 0 ? 0 : w.hi - w.lo;
	int type = c->type;

	for (int64_t k = 0; k < have && n < c->in[2]; k++)
		if (bias)
			ckr_copy_elements(ckr_item(dx, type, k * plane), 1,
			                  ckr_item(bias, type, k), 0, type,
			                  c->in[2]);
		else
			ckr_zeros(ckr_item(dx, type, k * plane), type,
			          c->in[2]);
	if (n <= 0)
		return;
	dx = ckr_item(dx, type, w.first + w.lo * w.step);
	from += (row * b->extent[1] + w.lo) * CKR_BLOCK;
	ckr_unpack(dx, type, plane, w.step, from, n, have);
}

/* Rows lo..hi-1 of one block of channels, from a task's part that begins
 * above window `line`. */
static inline void
ckr_unpack_rows(const struct ckr_conv *c, const struct ckr_blocks *b,
                void *dx, const float *from, int64_t line, int64_t lo,
                int64_t hi, int64_t have, const void *bias)
{
	int64_t width = c->in[2], s = c->stride[1], step = b->point ? s : 1;

	if (b->point && s == 1 && c->stride[2] == 1 && c->begin[1] == 0 &&
	    c->begin[2] == 0 && b->extent[1] == width) {
		ckr_unpack(ckr_item(dx, c->type, lo * width), c->type,
		           c->in_size, 1, from + (lo - line) * width
		           * CKR_BLOCK, (hi - lo) * width, have);
		return;
	}
	for (int64_t h = lo; h < hi; h++) {
		int64_t r = h + c->begin[1] - line * s;
		int64_t row = r % step ? -1 : r / step;

		ckr_unpack_dx(c, b, ckr_item(dx, c->type, h * width), from,
		              row < b->extent[0] ? row : -1, have, bias);
	}
}

static inline void
ckr_blocks_dx_task(const struct ckr_conv *c, const struct ckr_blocks *b,
                   void *dx, const void *dy, const void *bias, int64_t task,
                   float *workspace, const struct ckr_env *env)
{
	int type = c->type;
	int64_t own = b->lines - b->halo, parts = (c->out[1] + own - 1) / own;
	int64_t first = ckr_digit(&task, b->cin / b->channels) * b->channels;
	int64_t part = ckr_digit(&task, parts), line = part * own - b->halo;
	int64_t g = ckr_digit(&task, c->group), image = task * b->images;
	int64_t s = c->stride[1];
	int64_t lo = part ? part * own * s - c->begin[1] : 0;
	int64_t hi = part + 1 < parts ? (part + 1) * own * s - c->begin[1]
	                              : c->in[1];
	int64_t each = b->extent[0] * b->extent[1] * CKR_BLOCK;
	const void *end = ckr_item(dy, type, c->images * c->group * c->cout
	                              * c->out_size);
	float *out = ckr_own_part(b, workspace), *room = out;
	void *in = out + b->x;

	lo = lo < 0 ? 0 : lo;
	hi = hi > c->in[1] ? c->in[1] : hi;
	for (int64_t i = 0; i < b->images; i++)
		ckr_pack_dy(c, b, ckr_item(in, type, i * b->cout * b->lines
		                              * c->out[2]),
		            ckr_item(dy, type, ((image + i) * c->group + g)
		                        * c->cout * c->out_size), 0, b->cout,
		            line, 0, end);
	ckr_call_blocks(b, out, ckr_item(workspace, type,
	                                    (g * b->cin + first) * b->cout
	                                    * c->taps), in, room, env);
	for (int64_t i = 0; i < b->images; i++)
		for (int64_t k = first; k < first + b->channels;
		     k += CKR_BLOCK, out += each) {
			int64_t have = ckr_filled(c->cin - k);
			const void *add = bias ? ckr_item(bias, type, g
				* c->cin + k) : NULL;

			if (have == 0)
				continue;
			if (add)
				ckr_add_bias(out, add, type, each / CKR_BLOCK,
				             have);
			ckr_unpack_rows(c, b, ckr_item(dx, type,
			                (((image + i) * c->group + g) * c->cin
			                 + k) * c->in_size), out,
			                line, lo, hi, have, add);
		}
}

void
ckr_blocks_dx(const struct ckr_conv *c, const struct ckr_blocks *b, void *dx,
              const void *dy, const void *w, const void *bias,
              float *workspace, const struct ckr_env *env)
{
	int type = c->type;
	int64_t own = b->lines - b->halo, part = b->channels / CKR_BLOCK;
	int64_t tasks = c->images / b->images * c->group *
	                ((c->out[1] + own - 1) / own) *
	                (b->cin / b->channels);
	int64_t outs = b->cout / CKR_BLOCK, ins = b->cin / CKR_BLOCK;

#pragma omp parallel num_threads(env->threads)
	{
#pragma omp for collapse(2)
		for (int64_t g = 0; g < c->group; g++)
			for (int64_t o = 0; o < outs; o++)
				for (int64_t i = 0; i < ins; i++) {
					int64_t at = c->taps == 1 &&
					             CKR_BLOCK == 16 &&
					             type == CKR_F32
						? i * outs + o
						: (i / part * outs + o) *
						  part + i % part;

					ckr_pack_weights(
						c,
						ckr_item(workspace, type,
							(g * ins * outs + at)
							* c->taps
							* CKR_SQUARE),
						ckr_item(w, type,
							g * c->cout * c->cin
							* c->taps),
						o * CKR_BLOCK, i * CKR_BLOCK,
						1);
				}
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < tasks; i++)
			ckr_blocks_dx_task(c, b, dx, dy, bias, i, workspace,
			                   env);
	}
}

static inline void
ckr_blocks_dw_task(const struct ckr_conv *c, const struct ckr_blocks *b,
                   const void *x, const void *dy, int64_t task,
                   float *workspace, const struct ckr_env *env)
{
	int type = c->type;
	int64_t chunks = b->cout / b->channels;
	int64_t first = ckr_digit(&task, chunks) * b->channels;
	int64_t g = ckr_digit(&task, c->group), image = task * b->each;
	int64_t size = b->channels * b->cin * c->taps;
	int64_t left = c->images - image;
	const void *end_x = ckr_item(x, type, c->images * c->group * c->cin
	                                * c->in_size);
	const void *end_dy = ckr_item(dy, type, c->images * c->group
	                                 * c->cout * c->out_size);
	float *in = ckr_own_part(b, workspace), *out = in + b->x;
	float *sum = workspace
		+ ((task * c->group + g) * b->cout + first) * b->cin * c->taps,
	      *to = sum;

	left = left < b->each ? left : b->each;
	for (int64_t n = image; n < image + left; n += b->images)
	for (int64_t from = 0; from < c->out[1]; from += b->lines) {
		int64_t last = c->out[1] - b->lines;
		int64_t line = from < last ? from : last;

		for (int64_t i = 0; i < b->images; i++) {
			ckr_pack_x(c, b, ckr_item(in, type, i * b->cin
			           * b->extent[0] * b->extent[1]),
			           ckr_item(x, type, ((n + i) * c->group
			                       + g) * c->cin * c->in_size),
			           line, end_x);
			ckr_pack_dy(c, b, ckr_item(out, type, i
			            * b->channels * b->lines * c->out[2]),
			            ckr_item(dy, type, ((n + i) * c->group
			                        + g) * c->cout * c->out_size),
			            first, b->channels, line, from, end_dy);
		}
		ckr_call_blocks(b, in, to, out, in, env);
		if (to != sum) {
#pragma omp simd
			for (int64_t i = 0; i < size; i++)
				sum[i] += to[i];
		}
		to = in + b->x + b->y;
	}
}

/* Sum the partial gradients of a square of channels, all taps, in the first
 * part. */
static inline void
ckr_blocks_dw_sum(const struct ckr_conv *c, const struct ckr_blocks *b,
                  void *dw, float *part, int64_t parts, int64_t o, int64_t i)
{
	int64_t all = c->group * b->cout * b->cin * c->taps;
	int64_t ins = b->cin < CKR_BLOCK ? b->cin : CKR_BLOCK;
	int64_t row = c->cin * c->taps, outs = ckr_filled(c->cout - o);

	for (int64_t p = 1; p < parts; p++) {
#pragma omp simd
		for (int64_t at = 0; at < c->taps * ins * CKR_BLOCK; at++)
			part[at] += part[p * all + at];
	}
	ins = ckr_least(ins, c->cin - i);
	dw = ckr_item(dw, c->type, o * row + i * c->taps);
	if (c->taps == 1 && ins == CKR_BLOCK && outs == CKR_BLOCK) {
		ckr_turn(dw, c->type, row, part, CKR_F32, CKR_BLOCK, CKR_BLOCK);
		return;
	}
	for (int64_t k = 0; k < outs; k++)
		for (int64_t m = 0; m < ins; m++)
			for (int64_t t = 0; t < c->taps; t++)
				ckr_narrow(dw, c->type, k * row + m * c->taps
				           + t, part + (t * ckr_least(b->cin,
				           CKR_BLOCK) + m) * CKR_BLOCK + k, 1);
}

void
ckr_blocks_dw(const struct ckr_conv *c, const struct ckr_blocks *b, void *dw,
              const void *x, const void *dy, float *workspace,
              const struct ckr_env *env)
{
	int64_t parts = (c->images + b->each - 1) / b->each;
	int64_t tasks = parts * c->group * (b->cout / b->channels);

#pragma omp parallel num_threads(env->threads)
	{
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < tasks; i++)
			ckr_blocks_dw_task(c, b, x, dy, i, workspace, env);
#pragma omp for collapse(3)
		for (int64_t g = 0; g < c->group; g++)
			for (int64_t o = 0; o < b->cout; o += CKR_BLOCK)
				for (int64_t i = 0; i < b->cin; i += CKR_BLOCK)
					ckr_blocks_dw_sum(
						c, b,
						ckr_item(dw, c->type,
							g * c->cout * c->cin
							* c->taps),
						workspace
							+ (g * b->cout + o)
								* b->cin
								* c->taps
							+ i * c->taps
								* CKR_BLOCK,
						parts, o, i);
	}
}
