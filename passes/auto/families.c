/* Families: their plans bound the seconds and bytes of their candidates. */
#include "passes/auto/inside.h"
#include "passes/auto/bounds.h"

#include <stdio.h>

static bool
is_of_family(const struct auto_config *f, const struct auto_config *c)
{
	return f->tp == c->tp && f->ep == c->ep && f->sp == c->sp
		&& f->halves == c->halves && f->batch == c->batch;
}

/* Candidates of a family mostly stand side by side. */
static int64_t
family_of(struct search *s, const struct auto_config *c)
{
	int64_t i = s->nfamily;

	while (i > 0 && !is_of_family(&s->family[i - 1].config, c))
		i--;
	if (i > 0)
		return i - 1;
	s->family[s->nfamily].config = (struct auto_config){ .tp = c->tp,
		.dp = c->ep, .pp = 1, .ep = c->ep, .batch = c->batch,
		.accum = 1, .sp = c->sp, .halves = c->halves };
	return s->nfamily++;
}

/* One device has a family for each batch, even if all candidates shard. */
void
families_list(struct search *s)
{
	const struct auto_found *f = s->found;

	s->family = arena_array(s->arena, 2 * (size_t)f->n + 1,
	                        sizeof *s->family);
	s->of_candidate = arena_array(s->arena, (size_t)f->n + 1,
	                              sizeof *s->of_candidate);
	for (int64_t i = 0; i < f->n; i++) {
		const struct auto_config *c = &f->candidate[i].config;
		const struct auto_config one = { .tp = 1, .pp = 1, .ep = 1,
			.batch = c->batch };

		family_of(s, &one);
		s->of_candidate[i] = family_of(s, c);
	}
}

static bool
is_one_device(const struct auto_config *c)
{
	return auto_ranks(c) == 1;
}

/* On one device, for all batches. */
bool
families_plan_batches(struct search *s)
{
	struct auto_job *job = arena_array(s->arena, (size_t)s->nfamily + 1,
	                                   sizeof *job);
	struct auto_found *f = s->found;
	int n = 0, k = 0;

	for (int64_t i = 0; i < s->nfamily; i++)
		if (is_one_device(&s->family[i].config))
			job[n++] = (struct auto_job){ .flops = true,
				.config = s->family[i].config };
	if (!s->planner(s->of, job, n))
		return false;
	f->nplan += n;
	for (int64_t i = 0; i < s->nfamily; i++) {
		struct family *own = &s->family[i];

		if (!is_one_device(&own->config))
			continue;
		own->plan = job[k].plan;
		if (job[k++].late)
			snprintf(own->plan.why, AUTO_WHY, "it was not planned "
			         "within --plan-time");
		own->known = true;
		if (own->plan.ok && f->flops <= 0) {
			f->flops = own->plan.flops / (double)own->config.batch;
			f->peak_flops = own->plan.peak_flops;
			f->tokens = own->plan.tokens;
		}
	}
	return true;
}

/* What one replica needs is shared out at best. */
static void
refuse_by_family(const struct search *s, struct auto_candidate *c,
                 const struct auto_plan *p)
{
	int64_t states, needs = bytes_by_replica(&c->config, p, &states);

	refuse_if_small(s->r, c, needs, states);
}

/* What n times as many ranks do, those of the family do in n times the seconds
 * at most: one of them has the parts of n. */
static void
bound_multiples(struct search *s, int64_t family)
{
	const struct auto_config *own = &s->family[family].config;
	const struct auto_plan *p = &s->family[family].plan;

	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];
		struct auto_config like = c->config;

		if (c->config.tp <= own->tp || c->config.tp % own->tp)
			continue;
		like.tp = own->tp;
		if (is_of_family(own, &like))
			bound_raise(c, bound_by_replica(s->r, &c->config, p,
			                                own->tp));
	}
}

/* What cannot be planned without replicas cannot be planned with them. */
void
families_take(struct search *s, int64_t family)
{
	const struct auto_plan *p = &s->family[family].plan;

	if (p->ok && p->predicted && s->r->in_proportion
	    && s->family[family].config.ep == 1)
		bound_multiples(s, family);
	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];

		if (s->of_candidate[i] != family || c->state != AUTO_OPEN)
			continue;
		if (p->ok) {
			bound_raise(c, bound_by_replica(s->r, &c->config, p,
			                                c->config.tp));
			refuse_by_family(s, c, p);
			continue;
		}
		c->state = AUTO_REFUSED;
		c->plan = *p;
	}
}

void
families_set_bounds(struct search *s)
{
	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];
		const struct auto_config one = { .tp = 1, .pp = 1, .ep = 1,
			.batch = c->config.batch };
		const struct auto_plan *p =
			&s->family[family_of(s, &one)].plan;

		if (p->ok)
			bound_raise(c, bound_by_device(s->r, &c->config, p));
	}
	for (int64_t i = 0; i < s->nfamily; i++)
		if (s->family[i].known)
			families_take(s, i);
}

/* The family to be planned first: one of fewer ranks that bounds it, if there
 * is one that is not known yet. */
int64_t
families_first(const struct search *s, int64_t family)
{
	const struct auto_config *c = &s->family[family].config;
	int64_t first = family;

	for (int64_t i = 0; i < s->nfamily && s->predicts; i++) {
		const struct family *f = &s->family[i];
		struct auto_config like = *c;

		like.tp = f->config.tp;
		if (!f->known && f->config.tp < s->family[first].config.tp
		    && c->tp % f->config.tp == 0
		    && is_of_family(&f->config, &like))
			first = i;
	}
	return first;
}
