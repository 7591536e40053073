/* Lower bounds of seconds and bytes.
 *
 * exact   if the seconds of an op fall at most in proportion to its share, and
 *         replicas do not help ranks to hide their transfers
 * replica n ranks compute what one of them does in an n-th of its seconds at
 *         least.  Of a step, all micro-batches but the last take what the
 *         replica does, or what their transfers do; the last has the update,
 *         too
 * sent    replicas add up gradients in a ring: a reduce-scatter and an
 *         all-gather.  With ZeRO the all-gather is one of parameters: of what
 *         is cast to 16 bits and, at stage 3, of all in each micro-batch.  From
 *         stage 2 on each micro-batch reduces (Rajbhandari et al. 2020)
 */
#include "passes/auto/bounds.h"
#include "passes/cost/cost.h"

#include <math.h>
#include <stdio.h>

/* Of all parameters, what ZeRO may leave whole (optimizer_shards.c). */
static const double WHOLE = 1.0 / 64;

/* Seconds on the lane of transfers between replicas. */
struct sent {
	double micro;                   /* in each micro-batch */
	double once;                    /* in the last one beside that */
};

/* The update's share of what it takes on one replica. */
static double
update_bound(const struct auto_request *r, const struct auto_config *c,
             double sec)
{
	int64_t group = auto_shards(c) * c->ep;

	group = group < c->dp ? group : c->dp;
	sec /= (double)c->pp;
	return group == 1 ? sec : r->in_proportion ? sec / (double)group : 0;
}

double
bound_by_device(const struct auto_request *r, const struct auto_config *c,
                const struct auto_plan *one)
{
	if (!r->in_proportion && c->tp * c->ep > 1)
		return 0;
	return (auto_turns(r, c) * one->micro_sec / (double)c->ep
	        + update_bound(r, c, one->update_sec)) / (double)c->tp;
}

/* Of a reduce-scatter or an all-gather of so many bytes. */
static double
transfer_sec(const struct auto_request *r, struct ring ring, double bytes)
{
	return bytes * (double)(ring.ranks - 1) / (double)ring.ranks
		/ device_ring_link(r->device, ring).rate;
}

/* On one lane, or on the one that takes longer; micro: what else the lane of
 * the first has. */
static double
join_lanes(const struct auto_request *r, struct ring x, struct ring y,
           double x_sec, double y_sec, double micro)
{
	if (device_ring_link(r->device, x).network
	    == device_ring_link(r->device, y).network)
		return x_sec + y_sec;
	return fmax(x_sec, y_sec - micro);
}

/* share: of the replica's parameters that a rank has. */
static struct sent
sent_bound(const struct auto_request *r, const struct auto_config *c,
           const struct auto_plan *replica, double share)
{
	double cast = share * replica->cast_bytes;
	double uncast = share * replica->uncast_bytes;
	double gradient = share * replica->gradient_bytes;
	int64_t n = auto_shards(c);
	const struct ring all = { c->dp, c->tp }, shards = { n, c->tp };
	const struct ring copies = { c->dp / n, c->tp * n };
	bool each = c->zero >= 2 && c->accum > 1;
	struct sent s = { 0, 0 };
	double whole;

	if (!r->device || c->dp == 1 || c->ep > 1)
		return s;
	if (!c->zero) {
		s.once = transfer_sec(r, all, 2 * gradient);
		return s;
	}
	whole = WHOLE * (cast + uncast);
	cast = fmax(cast - whole, 0);
	uncast = fmax(uncast - whole, 0);
	gradient *= 1 - WHOLE;
	s.micro = transfer_sec(r, shards, cast + (c->zero == 3 ? uncast : 0)
	                       + (each ? gradient : 0));
	s.once = transfer_sec(r, shards, (c->zero == 3 ? 0 : uncast)
	                      + (each ? 0 : gradient));
	s.once = join_lanes(r, shards, copies, s.once,
	                    transfer_sec(r, copies,
	                                 2 * gradient / (double)n),
	                    s.micro);
	return s;
}

double
bound_by_replica(const struct auto_request *r, const struct auto_config *c,
                 const struct auto_plan *p, int64_t tp)
{
	double share = (double)tp / (double)c->tp;
	double micro = share * (c->ep > 1 ? p->micro_sec : p->micro_shown);
	double update = share * update_bound(r, c, p->update_sec);
	struct sent sent = sent_bound(r, c, p, share);
	double last = fmax(micro / (double)c->pp + update,
	                   (sent.micro + sent.once) / (double)c->pp);

	return (auto_turns(r, c) - 1 / (double)c->pp) * fmax(micro, sent.micro)
		+ last;
}

int64_t
bytes_by_replica(const struct auto_config *c, const struct auto_plan *p,
                 int64_t *states)
{
	int64_t parts = auto_shards(c) * c->pp;

	*states = p->states / parts;
	return p->needs / parts - (c->offload ? *states : 0);
}

void
bound_raise(struct auto_candidate *c, double bound)
{
	c->bound = bound > c->bound ? bound : c->bound;
}

void
refuse_if_small(const struct auto_request *r, struct auto_candidate *c,
                int64_t needs, int64_t states)
{
	if (r->budget <= 0 || needs <= r->budget)
		return;
	c->state = AUTO_REFUSED;
	c->plan = (struct auto_plan){ .least = needs, .at_least = true,
	                              .states = states };
	snprintf(c->plan.why, AUTO_WHY, "a step needs %lld B at least",
	         (long long)needs);
}
