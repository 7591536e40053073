/* Agreement between the processes of a run. */
#include "runtime/world/world.h"

bool
world_is_first(const struct world *w)
{
	return !w->team || w->team->rank == 0;
}

enum { ANY = 1 };

ckr_status
world_agree(struct world *w, ckr_status s, const char *what)
{
	struct pg_task task = { .op = what, .patient = true };
	struct pg_vote v = { .status = s };

	/* what all know already they all have come here with */
	if (!w->team || s == CKR_ERANK || (s != CKR_OK && w->err->known))
		return s;
	return pg_agree(w->team, &v, &task, w->err);
}

ckr_status
world_any(struct world *w, bool here, uint64_t step, bool *any)
{
	struct pg_task task = { .op = "the end of the step", .step = step };
	struct pg_vote v = { .flags = here ? ANY : 0 };

	if (w->team)
		CKR_TRY(pg_agree(w->team, &v, &task, w->err));
	*any = v.flags & ANY;
	return CKR_OK;
}

ckr_status
world_broadcast(struct world *w, void *data, uint64_t n,
                const struct pg_task *task)
{
	char *at = data;

	for (uint64_t i = 0, k; w->team && i < n; i += k) {
		k = n - i < PG_BUFFER ? n - i : PG_BUFFER;
		CKR_TRY(pg_broadcast(w->team, 0, at + i, (int)k, task, w->err));
	}
	return CKR_OK;
}
