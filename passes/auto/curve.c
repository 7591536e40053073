/* What a budget does to configurations with the same micro-batch: seconds that
 * it adds by bytes that it saves.
 *
 * Replicas and stages of ZeRO move the budget that is left for activations, not
 * the curve; where a plan gathers parameters, their ring is part of what is
 * alike.  Points are added where configurations need them; between near ones
 * the curve is a line, beside one it rises as the square.
 */
#include "passes/auto/auto.h"

#include <string.h>

/* Ratios of bytes: of neighbours of a line; of a point to one beside it. */
static const double LINE = 1.25, BESIDE = 1.08;

bool
auto_curve_is_near(const struct auto_curve *v, const struct auto_config *c)
{
	const struct auto_config *like = &v->like;

	return like->tp == c->tp && like->ep == c->ep && like->sp == c->sp
		&& like->halves == c->halves && like->batch == c->batch
		&& like->offload == c->offload
		&& (like->accum > 1) == (c->accum > 1)
		&& (like->zero == 3) == (c->zero == 3);
}

bool
auto_curve_serves(const struct auto_curve *v, const struct auto_config *c)
{
	return auto_curve_is_near(v, c)
		&& auto_shards(&v->like) == auto_shards(c);
}

double
auto_curve_least(const struct auto_curve *v, double left)
{
	double sec = 0;

	for (size_t i = 0; i < v->n; i++)
		if (v->point[i].left >= left && v->point[i].sec > sec)
			sec = v->point[i].sec;
	return sec;
}

/* Points that another one beats in bytes and seconds go. */
void
auto_curve_add(struct auto_curve *v, const struct auto_point *p, Arena *a)
{
	size_t n = 0, at;

	for (size_t i = 0; i < v->n; i++)
		if (v->point[i].bytes >= p->bytes && v->point[i].sec <= p->sec)
			return;
	for (size_t i = 0; i < v->n; i++)
		if (v->point[i].bytes > p->bytes || v->point[i].sec < p->sec)
			v->point[n++] = v->point[i];
	v->n = n;
	v->point = arena_grow(a, v->point, n, &v->cap, n + 1,
	                      sizeof *v->point);
	for (at = n; at > 0 && v->point[at - 1].bytes > p->bytes; at--)
		v->point[at] = v->point[at - 1];
	v->point[at] = *p;
	v->n = n + 1;
}

static void
scale_point(const struct auto_point *p, double by, struct auto_point *to)
{
	*to = *p;
	to->bytes *= by;
	to->sec *= by * by;
	to->recompute *= by * by;
	to->host = (int64_t)((double)to->host * by);
}

static void
mix_points(const struct auto_point *p, const struct auto_point *q, double bytes,
           struct auto_point *to)
{
	double x = (bytes - p->bytes) / (q->bytes - p->bytes);

	*to = (struct auto_point){ .bytes = bytes,
		.sec = p->sec + x * (q->sec - p->sec),
		.recompute = p->recompute + x * (q->recompute - p->recompute),
		.host = p->host + (int64_t)(x * (double)(q->host - p->host)),
	};
}

static double
ratio(double a, double b)
{
	return a > b ? a / b : b / a;
}

/* The first point with at least so many bytes; v->n. */
static size_t
find_above(const struct auto_curve *v, double bytes)
{
	size_t i = 0;

	while (i < v->n && v->point[i].bytes < bytes)
		i++;
	return i;
}

static const struct auto_point *
nearest(const struct auto_curve *v, double bytes)
{
	size_t i = find_above(v, bytes);

	if (i == 0 || (i < v->n && ratio(v->point[i].bytes, bytes)
	               < ratio(v->point[i - 1].bytes, bytes)))
		return &v->point[i];
	return &v->point[i - 1];
}

void
auto_curve_nearest(const struct auto_curve *v, double bytes,
                   struct auto_point *to)
{
	const struct auto_point *p = nearest(v, bytes);

	scale_point(p, bytes / p->bytes, to);
}

bool
auto_curve_at(const struct auto_curve *v, double bytes, struct auto_point *to)
{
	size_t i = find_above(v, bytes);

	if (v->n == 0)
		return false;
	if (i > 0 && i < v->n
	    && v->point[i].bytes <= LINE * v->point[i - 1].bytes) {
		mix_points(&v->point[i - 1], &v->point[i], bytes, to);
		return true;
	}
	if (ratio(nearest(v, bytes)->bytes, bytes) > BESIDE)
		return false;
	auto_curve_nearest(v, bytes, to);
	return true;
}
