/* Costs of sharding strategies: seconds forward and backward by the device's
 * profile.
 *
 * A conversion costs its collective and that of the dual one (Rink et al.'s
 * and Alpa's edge costs, with the backward side by duality instead of a
 * second graph).  What backward may read costs its bytes, too: a byte is worth
 * the time to write it, which is the least that a planner pays to make it
 * again.
 */
#include "passes/tensor_parallel/strategies.h"
#include "passes/cost/cost.h"

/* The backward of a product is two products; of other ops about the same. */
enum { PHASES = 3 };
#define TIE 1e-9

static double
value_bytes(const struct shard *s, ValId v)
{
	int64_t n = val_data_bytes(&s->g->val[v]);

	return n > 0 ? (double)n : 0;
}

/* The ranks of a replica. */
static struct ring
shard_ring(const struct shard *s)
{
	return (struct ring){ s->ranks, 1 };
}

/* Every element passes around the ring once. */
static double
ring_sec(const struct shard *s, double bytes)
{
	double t = (double)s->ranks;

	return device_ring_seconds(device_of(s->g), shard_ring(s),
	                           bytes * (t - 1) / t);
}

static double
all_reduce_sec(const struct shard *s, double bytes)
{
	double t = (double)s->ranks;

	return device_ring_seconds(device_of(s->g), shard_ring(s),
	                           2 * bytes * (t - 1) / t);
}

/* Seconds to read and write once. */
static double
copy_sec(const struct shard *s, double bytes)
{
	const struct device_profile *d = device_of(s->g);

	return 2 * bytes / d->bandwidth + d->launch;
}

/* The price of what a rank keeps of a value for backward; summands become a sum
 * first. */
static double
keep_sec(const struct shard *s, ValId v, const Placement *at)
{
	double bytes = s->grad[v] && at->kind != PLACEMENT_PARTIAL
		? value_bytes(s, v) : 0;

	if (at->kind == PLACEMENT_SHARD)
		bytes *= (double)at->replication / (double)s->ranks;
	return bytes / device_of(s->g)->bandwidth;
}

static bool
is_single_dim_split(const Placement *s)
{
	return s->first_axis == s->axis && s->replication == 1;
}

/* Whether the value is overwritten in place, such as a running statistic. */
static bool
is_overwritten_value(const struct shard *s, ValId v)
{
	FOR_USES (i, &s->uses, v) {
		const Node *n = &s->g->node[s->uses.node[i]];

		if (op_info[n->op].flags & F_WRITES && n->in[0] == v)
			return true;
	}
	return false;
}

/* -1: it cannot be converted; blocks of quantised weights are only read. */
static double
transfer_cost(const struct shard *s, ValId v, const Placement *from,
              const Placement *to)
{
	double whole = value_bytes(s, v), piece = whole / (double)s->ranks;
	double back = s->grad[v] ? 1 : 0;
	double shared = to->kind == PLACEMENT_SHARD && to->replication > 1
		? back * all_reduce_sec(s, whole) : 0;

	if (placement_eq(from, to))
		return 0;
	if ((from->kind == PLACEMENT_SHARD && from->replication > 1)
	    || is_overwritten_value(s, v)
	    || (val_is_blocks(&s->g->val[v])
	        && (from->kind == PLACEMENT_SHARD
	            || to->kind == PLACEMENT_SHARD)))
		return -1;
	switch (from->kind) {
	case PLACEMENT_REPLICATE:
		if (to->kind == PLACEMENT_REPLICATE_PARTIAL)
			return back * all_reduce_sec(s, whole);
		if (to->kind == PLACEMENT_SHARD)
			return copy_sec(s, piece) + (shared > 0 ? shared
			       + back * copy_sec(s, whole)
			       : back * ring_sec(s, whole));
		return -1;
	case PLACEMENT_REPLICATE_PARTIAL:
		if (to->kind != PLACEMENT_SHARD)
			return back ? -1 : 0;
		return copy_sec(s, piece) + back * copy_sec(s, whole);
	case PLACEMENT_SHARD:
		if (to->kind == PLACEMENT_REPLICATE)
			return ring_sec(s, whole) + back * copy_sec(s, piece);
		if (to->kind == PLACEMENT_REPLICATE_PARTIAL)
			return (1 + back) * ring_sec(s, whole);
		if (to->kind == PLACEMENT_SHARD && is_single_dim_split(from)
		    && is_single_dim_split(to))
			return (1 + back) * ring_sec(s, piece);
		if (to->kind == PLACEMENT_SHARD)
			return (1 + back) * ring_sec(s, whole)
				+ copy_sec(s, piece)
				+ back * copy_sec(s, whole);
		return -1;
	default:
		if (to->kind == PLACEMENT_REPLICATE)
			return all_reduce_sec(s, whole);
		if (to->kind == PLACEMENT_REPLICATE_PARTIAL)
			return (1 + back) * all_reduce_sec(s, whole);
		if (to->kind == PLACEMENT_SHARD && to->replication == 1)
			return (1 + back) * ring_sec(s, whole);
		return -1;
	}
}

double
shard_conversion_cost(const struct shard *s, ValId v, const Placement *from,
                      const Placement *to)
{
	double sec = transfer_cost(s, v, from, to);

	return sec > 0 ? sec + keep_sec(s, v, to) : sec;
}

double
shard_node_cost(const struct shard *s, const Node *n, const Placement *result,
                bool sharded)
{
	double sec = node_cost(s->g, n).sec, keep = 0;
	double launch = device_of(s->g)->launch;

	for (int k = 0; k < n->nout && sec > 0; k++)
		if (n->out[k])
			keep += keep_sec(s, n->out[k], &result[k]);

	/* at equal cost, all equal layers take the strategy that converts
	 * right after a product or norm */
	if (sharded && sec <= 0)
		return TIE;
	if (sharded && sec > launch)
		sec = launch + (sec - launch) / (double)s->ranks;
	return PHASES * sec + keep;
}

double
shard_param_cost(const struct shard *s, ValId v, const Placement *placement)
{
	double t = (double)s->ranks;

	if (placement->kind != PLACEMENT_REPLICATE_PARTIAL || !s->grad[v])
		return 0;
	/* reduced together: no latency of its own */
	return all_reduce_sec(s, value_bytes(s, v))
		- device_ring_link(device_of(s->g), shard_ring(s)).latency
		  * (t - 1);
}
