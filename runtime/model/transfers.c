#include "runtime/model/transfers.h"

#include <stdlib.h>

static uint32_t
count_apart(const struct ckr_program *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nstep; i++)
		n += p->step[i].comm && p->step[i].comm->end > i;
	return n;
}

/* Memory for all that may be on their way at once, and one more. */
ckr_status
transfers_open(ckr_ctx *c)
{
	struct transfers *t = calloc(1, sizeof(*t));

	if (!t)
		return rt_no_memory(c);
	c->transfers = t;
	t->by = c->team ? &carry_apart : &carry_here;
	for (int k = 0; k < 2; k++) {
		uint32_t n = count_apart(&c->lib->program[k]) + 1;

		t->most = n > t->most ? n : t->most;
	}
	t->end = UINT32_MAX;
	t->one = calloc(t->most, sizeof(*t->one));
	return t->one ? t->by->open(c) : rt_no_memory(c);
}

void
transfers_close(ckr_ctx *c)
{
	if (!c->transfers)
		return;
	transfers_drop(c);
	c->transfers->by->close(c);
	free(c->transfers->one);
	free(c->transfers);
	c->transfers = NULL;
}

void
transfers_drop(ckr_ctx *c)
{
	struct transfers *t = c->transfers;

	for (uint32_t k = 0; k < t->n; k++)
		if (t->one[k].b)
			t->by->drop(c, &t->one[k]);
	for (uint32_t k = 0; k < t->n; k++)
		t->one[k].b = NULL;
	t->n = 0;
	t->end = UINT32_MAX;
}

static struct transfer *
free_one(struct transfers *t)
{
	uint32_t k = 0;

	while (k < t->n && t->one[k].b)
		k++;
	t->n += k == t->n;
	return &t->one[k];
}

/* The first of those that are left, if it is. */
static void
look_again(struct transfers *t)
{
	while (t->n > 0 && !t->one[t->n - 1].b)
		t->n--;
	t->end = UINT32_MAX;
	for (uint32_t k = 0; k < t->n; k++)
		if (t->one[k].b && t->one[k].end < t->end)
			t->end = t->one[k].end;
}

static ckr_status
end_one(ckr_ctx *c, struct transfer *x)
{
	struct transfers *t = c->transfers;
	bool apart = x->end > x->step, timed = c->trace || c->profile;
	double from = timed && apart ? now_sec() : 0;

	CKR_TRY(t->by->wait(c, x));
	if (timed && apart)
		trace_wait(c, x->b, x->step, from, now_sec());
	x->b = NULL;
	return CKR_OK;
}

ckr_status
transfers_begin(ckr_ctx *c, const struct bound *b, uint32_t i)
{
	struct transfers *t = c->transfers;
	struct transfer *x = free_one(t);

	*x = (struct transfer){ .b = b, .step = i,
		.end = b->p->step[i].comm->end };
	CKR_TRY(t->by->begin(c, x));
	if (x->end == i) {
		CKR_TRY(end_one(c, x));
		look_again(t);
	} else if (x->end < t->end) {
		t->end = x->end;
	}
	return CKR_OK;
}

ckr_status
transfers_end(ckr_ctx *c, uint32_t i)
{
	struct transfers *t = c->transfers;

	if (t->n == 0)
		return CKR_OK;
	CKR_TRY(t->by->test(c));
	if (i < t->end)
		return CKR_OK;
	for (uint32_t k = 0; k < t->n; k++)
		if (t->one[k].b && t->one[k].end <= i)
			CKR_TRY(end_one(c, &t->one[k]));
	look_again(t);
	return CKR_OK;
}

ckr_status
transfers_finish(ckr_ctx *c)
{
	return transfers_end(c, UINT32_MAX);
}
