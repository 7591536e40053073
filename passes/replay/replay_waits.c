/* Replay: the rules of transfers.
 *
 * wait    From the start of a transfer to the step after which it has ended,
 *         no step accesses the value that it receives, nor a view of it, and no
 *         step overwrites the value that it sends.
 * host    Only transfers to and from host memory, and views, access it; each
 *         has one side there. */
#include "passes/replay/replay_rules.h"

static bool
tensors_overlap(const struct replay *r, int64_t a, int64_t b)
{
	const struct plan_tensor *x = &r->p->tensor[a], *y = &r->p->tensor[b];

	return r->owner[a] == r->owner[b]
		&& x->alias_offset < y->alias_offset + y->bytes
		&& y->alias_offset < x->alias_offset + x->bytes;
}

static void
check_untouched(struct replay *r, int64_t begun, int64_t i)
{
	const struct plan_step *from = &r->p->step[begun];
	const struct plan_step *s = &r->p->step[i];

	for (int k = 0; k < s->nread + s->nwrite; k++) {
		bool write = k >= s->nread;
		int64_t t = write ? s->write[k - s->nread] : s->read[k];

		if (t < 0)
			continue;
		if (tensors_overlap(r, t, from->write[0]))
			FAULT(r, "wait", "instruction %" PRId64 " (%s) "
			      "accesses %s while instruction %" PRId64 " "
			      "receives it, until instruction %"
			      PRId64, i, s->op, name(r, t), begun,
			      from->wait);
		else if (write && !s->view
		         && tensors_overlap(r, t, plan_sent(from)))
			FAULT(r, "wait", "instruction %" PRId64 " (%s) "
			      "overwrites %s while instruction %" PRId64 " "
			      "sends it, until instruction %"
			      PRId64, i, s->op, name(r, t), begun,
			      from->wait);
	}
}

void
replay_waits(struct replay *r)
{
	for (int64_t i = 0; i < r->p->nstep; i++)
		for (int64_t k = i + 1; k <= r->p->step[i].wait; k++)
			check_untouched(r, i, k);
}

static void
check_host_access(struct replay *r, int64_t i)
{
	const struct plan_step *s = &r->p->step[i];
	bool out = s->lane == LANE_OFFLOAD, host = lane_is_host(s->lane);

	for (int k = 0; k < s->nread + s->nwrite; k++) {
		bool write = k >= s->nread;
		int64_t t = write ? s->write[k - s->nread] : s->read[k];
		bool sent = !write && k == s->nread - 1;

		if (t < 0 || s->view)
			continue;
		if (r->p->tensor[t].host != (host && sent != out))
			FAULT(r, "host", "instruction %" PRId64 " (%s) cannot "
			      "access %s, which is %s", i, s->op, name(r, t),
			      r->p->tensor[t].host ? "in host memory"
			      : "not in host memory");
	}
}

void
replay_host(struct replay *r)
{
	for (int64_t i = 0; i < r->p->nstep; i++)
		check_host_access(r, i);
}
