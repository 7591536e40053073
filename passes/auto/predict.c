/* What a model of n layers takes, from models of a few. */
#include "passes/auto/auto.h"

static double
extend(double few, double more, double n)
{
	return few + n * (more - few);
}

static int64_t
extend_bytes(int64_t few, int64_t more, int64_t n)
{
	return few + n * (more - few);
}

void
auto_extend(const struct auto_plan *few, const struct auto_plan *more,
            int64_t layers, struct auto_plan *to)
{
	const double n = (double)layers;

	*to = *few;
#define EXTEND(member) to->member = extend(few->member, more->member, n)
	EXTEND(sec);
	EXTEND(compute);
	EXTEND(recompute);
	EXTEND(sent_sec);
	EXTEND(busiest);
	EXTEND(micro_sec);
	EXTEND(update_sec);
	EXTEND(micro_shown);
	EXTEND(sent);
	EXTEND(cast_bytes);
	EXTEND(uncast_bytes);
	EXTEND(gradient_bytes);
	EXTEND(swapped);
	EXTEND(flops);
#undef EXTEND
#define EXTEND(member) \
	to->member = extend_bytes(few->member, more->member, layers)
	EXTEND(peak);
	EXTEND(resident);
	EXTEND(host);
	EXTEND(needs);
	EXTEND(states);
#undef EXTEND
}

/* The last layer recomputes less than the others, as backward begins with it:
 * what it and the ends of the model take on top does not grow with layers. */
void
auto_gain(const struct auto_plan *whole, const struct auto_plan *less,
          double few, double n, double accum, struct auto_point *to)
{
	double more = (n - few) / (few - 1);
	double sec = (less->sec - whole->sec) / accum;
	double share = less->again > 0
		? (few - 1) * less->layer_again / less->again : 1;

	*to = (struct auto_point){
		.sec = sec * (1 + more * share),
		.recompute = less->recompute / accum
			+ (n - few) * less->layer_recompute,
		.host = (int64_t)((double)less->host * (1 + more)),
	};
}
