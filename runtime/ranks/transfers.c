#include "runtime/ranks/transfers.h"

#include <stdlib.h>

/* Transfers that a program begins. */
static uint32_t
count_transfers(const struct ckr_program *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->ninstr; i++)
		n += p->instr[i].comm != NULL;
	return n;
}

ckr_status
transfers_open(struct transfers **out, const struct comm_view *view,
               struct err *e)
{
	struct transfers *t = *out = calloc(1, sizeof(*t));

	if (!t)
		return err_no_memory(e);
	t->view = *view;
	t->backend = view->nccl ? &backend_nccl : view->team ? &backend_process
	        : &backend_local;
	t->end = UINT32_MAX;
	for (int i = 0; i < CKR_PROGRAMS; i++) {
		uint32_t n = count_transfers(&view->program[i]);

		t->most = n > t->most ? n : t->most;
		t->total += n;
	}
	t->one = calloc(t->most + 1, sizeof(*t->one));
	return t->one ? t->backend->open(t, e) : err_no_memory(e);
}

void
transfers_close(struct transfers *t)
{
	if (!t)
		return;
	transfers_drop(t);
	if (t->backend->close)
		t->backend->close(t);
	free(t->one);
	free(t);
}

uint64_t
transfers_bytes(const struct transfers *t)
{
	return t->backend->bytes ? t->backend->bytes(t) : 0;
}

void
transfers_drop(struct transfers *t)
{
	for (uint32_t k = 0; k < t->n; k++)
		if (t->one[k].of && t->backend->drop)
			t->backend->drop(t, &t->one[k]);
	for (uint32_t k = 0; k < t->n; k++)
		t->one[k].of = NULL;
	t->n = 0;
	t->end = UINT32_MAX;
}

static struct transfer *
unused_transfer(struct transfers *t)
{
	uint32_t k = 0;

	while (k < t->n && t->one[k].of)
		k++;
	t->n += k == t->n;
	return &t->one[k];
}

ckr_status
transfers_begin(struct transfers *t, const struct transfer *x, struct err *e)
{
	struct transfer *one = unused_transfer(t);

	*one = *x;
	if (one->end < t->end)
		t->end = one->end;
	return t->backend->begin(t, one, e);
}

ckr_status
transfers_test(struct transfers *t, struct err *e)
{
	return t->n > 0 && t->backend->test ? t->backend->test(t, e) : CKR_OK;
}

struct transfer *
transfers_due(struct transfers *t, uint32_t i)
{
	if (i < t->end)
		return NULL;
	for (uint32_t k = 0; k < t->n; k++)
		if (t->one[k].of && t->one[k].end <= i)
			return &t->one[k];
	return NULL;
}

/* Which of those that are left ends first. */
static void
update_first_end(struct transfers *t)
{
	while (t->n > 0 && !t->one[t->n - 1].of)
		t->n--;
	t->end = UINT32_MAX;
	for (uint32_t k = 0; k < t->n; k++)
		if (t->one[k].of && t->one[k].end < t->end)
			t->end = t->one[k].end;
}

ckr_status
transfers_wait(struct transfers *t, struct transfer *x, struct err *e)
{
	CKR_TRY(t->backend->wait(t, x, e));
	x->of = NULL;
	update_first_end(t);
	return CKR_OK;
}
