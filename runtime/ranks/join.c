/* Joins the GPUs of all processes, and checks that they are compatible. */
#include "runtime/ranks/transfers.h"

#include <stdlib.h>
#include <string.h>

/* What a process tells the others. */
struct greeting {
	struct nccl_peer_info card;
	struct nccl_id id[NCCL_GROUPS]; /* of groups, from their first */
};

/* The world rank of the first in this process's group. */
static uint32_t
group_leader(const struct comm_view *c, int group)
{
	return ranks_of_axis(c, group).first;
}

static ckr_status
fill_greeting(const struct comm_view *c, struct greeting *g, struct err *e)
{
	memset(g, 0, sizeof(*g));
	for (int i = 0; i < NCCL_GROUPS; i++)
		if (has_axis(c, i) && group_leader(c, i) == c->team->rank)
			CKR_TRY(nccl_new_id(c->nccl, &g->id[i], e));
	return nccl_get_peer_info(c->nccl, &g->card, e);
}

/* NCCL would refuse it, too, in words that do not say whose fault it is. */
static bool
has_shared_gpu(const struct greeting *g, uint32_t r, struct err *e)
{
	const unsigned char *mark = g[r].card.uuid;
	uint32_t q = 0;

	while (q < r && memcmp(g[q].card.uuid, mark, sizeof(g->card.uuid)))
		q++;
	if (q < r)
		err_set(e, CKR_EARG, "ranks %u and %u use the same GPU (%s), "
		        "but each needs its own; start fewer processes on this "
		        "machine, or set CKR_GPU for each", q,
		        r, g[r].card.name);
	return q < r;
}

static bool
has_other_library(const struct greeting *g, uint32_t r, struct err *e)
{
	if (!strcmp(g[r].card.library, g[0].card.library))
		return false;
	err_set(e, CKR_EARG, "rank %u and rank 0 have different libraries: "
	        "'%s' and '%s'", r, g[r].card.library, g[0].card.library);
	return true;
}

/* All of them see the same. */
static ckr_status
check_greetings(const struct comm_view *c, const struct greeting *g,
                struct err *e)
{
	for (uint32_t r = 1; r < c->team->size; r++)
		if (has_shared_gpu(g, r, e) || has_other_library(g, r, e)) {
			e->known = true;
			e->mute = c->team->rank != 0;
			return CKR_EARG;
		}
	return CKR_OK;
}

static ckr_status
join_nccl_groups(const struct comm_view *c, const struct greeting *g,
                 struct err *e)
{
	ckr_status s = CKR_OK;

	pg_set_watchdog(c->team,
	                "joining the GPUs by NCCL: not all processes have "
	                "arrived");
	for (int i = 0; i < NCCL_GROUPS && s == CKR_OK; i++) {
		struct comm_ranks r = ranks_of_axis(c, i);

		if (has_axis(c, i))
			s = nccl_join_group(c->nccl, i, &g[r.first].id[i], r.n,
			                    rank_in_group(c, &r), e);
	}
	pg_set_watchdog(c->team, NULL);
	return s;
}

static ckr_status
agree_on_status(const struct comm_view *c, ckr_status s,
                const struct pg_task *w, struct err *e)
{
	struct pg_vote v = { .status = s };

	return s == CKR_ERANK ? s : pg_agree(c->team, &v, w, e);
}

ckr_status
transfers_join(struct transfers *t, struct err *e)
{
	const struct pg_task w = { .op = "joining the GPUs",
		.patient = true };
	const struct comm_view *c = &t->view;
	struct greeting mine, *all;
	ckr_status s;

	if (!c->nccl)
		return CKR_OK;
	all = calloc(c->team->size, sizeof(*all));
	s = all ? fill_greeting(c, &mine, e) : err_no_memory(e);
	s = agree_on_status(c, s, &w, e);
	if (s == CKR_OK)
		s = pg_allgather_equal(c->team, &mine, sizeof(mine), all, &w,
		                       e);
	if (s == CKR_OK)
		s = check_greetings(c, all, e);
	if (s == CKR_OK)
		s = agree_on_status(c, join_nccl_groups(c, all, e), &w, e);
	free(all);
	return s;
}
