#include "runtime/model/fetch.h"

#include <stdlib.h>
#include <string.h>

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A collective of this process with the others. */
static struct between
group_of(const ckr_ctx *c, enum link_group g, const struct team_task *w)
{
	bool dp = g == LINK_DP;

	return (struct between){ .team = c->team, .group = g,
		.rank = dp ? c->env.replica : c->env.rank,
		.ranks = dp ? c->world.dp : c->world.tp,
		.threads = c->env.threads, .task = *w };
}

/* Along what replicas have side by side. */
static void
find_batch(struct fetch *f)
{
	struct ckr_tensor w = rt_whole(f->c, f->t);
	int axis = f->t->batch - 1;
	struct ckr_split s = { .axis = (uint8_t)axis, .lead = (uint8_t)axis,
		.npart = 1, .shared = 1,
		.part = { (uint64_t)w.dim[axis] } };

	pieces_of(&f->batch, &s, f->c->world.dp, w.rank, w.dim);
}

ckr_status
fetch_begin(struct fetch *f, ckr_ctx *c, const struct bound *b,
            const struct ckr_tensor *t)
{
	struct team_task w = { .op = "gathering", .of = t->name,
		.bytes = rt_whole(c, t).nbytes, .patient = true };

	/* the groups and their memory are needed */
	CKR_TRY(rt_settle_transfers(c));
	*f = (struct fetch){ .c = c, .t = t,
		.group = group_of(c, LINK_TP, &w) };
	f->most = TEAM_ROOM / c->world.tp / 8;
	f->local = rt_at(c, b, 0, t);
	if (t->split && t->split->kind == CKR_CUT)
		pieces_of(&f->pieces, t->split, c->world.tp, t->rank, t->dim);
	if (t->batch && c->world.dp > 1)
		find_batch(f);
	if (rt_is_dense(t) && c->device->host)
		return CKR_OK;
	f->packed = malloc(rt_nbytes(t) + 1);
	if (!f->packed)
		return rt_no_memory(c);
	CKR_TRY(rt_pull(c, t, f->local, f->packed));
	f->local = f->packed;
	return CKR_OK;
}

/* Runs of the elements at .. at + n - 1, between their places there and those
 * of their first ranks, which lie one behind the other.  Returns how many of
 * each rank there are. */
static void
for_runs(struct fetch *f, uint64_t at, uint64_t n, uint64_t *count, char *out)
{
	uint64_t size = dtype_row[f->t->dtype].nbytes, first = f->run;
	char *in = f->c->team->in, *mine = f->c->team->out;
	uint64_t start[CKR_MAX_RANKS] = { 0 };

	for (uint32_t r = 1; out && r < f->c->world.tp; r++)
		start[r] = start[r - 1] + count[r - 1];
	memset(count, 0, f->c->world.tp * sizeof(*count));
	for (uint64_t i = first; i < f->pieces.nrun; i++) {
		struct piece_run u = pieces_run(&f->pieces, i);
		uint64_t lo = u.whole > at ? u.whole : at;
		uint64_t hi = least(u.whole + u.n, at + n), k;

		if (u.whole >= at + n)
			break;
		if (out)
			f->run = i;
		if (lo >= hi)
			continue;
		k = (hi - lo) * size;
		if (out)
			memcpy(out + (lo - at) * size,
			       in + (start[u.rank] + count[u.rank]) * size, k);
		else if (u.rank == f->group.rank)
			memcpy(mine + count[u.rank] * size,
			       f->local + (u.local + lo - u.whole) * size, k);
		count[u.rank] += hi - lo;
	}
}

static ckr_status
gather(struct fetch *f, uint64_t at, uint64_t n, char *out)
{
	uint64_t count[CKR_MAX_RANKS], size = dtype_row[f->t->dtype].nbytes;
	int nbytes[CKR_MAX_RANKS], place[CKR_MAX_RANKS], next = 0;
	struct team *t = f->c->team;
	struct link_side to = { t->in, nbytes, place };

	for_runs(f, at, n, count, NULL);
	for (uint32_t r = 0; r < f->c->world.tp; r++) {
		nbytes[r] = (int)(count[r] * size);
		place[r] = next;
		next += nbytes[r];
	}
	CKR_TRY(team_gather(t, LINK_TP, t->out, nbytes[f->group.rank], &to,
	                    &f->group.task, &f->c->err));
	for_runs(f, at, n, count, out);
	return CKR_OK;
}

/* Of this process's replica, whose ranks alone ask for them. */
static ckr_status
of_replica(struct fetch *f, uint64_t at, uint64_t n, char *out)
{
	uint64_t size = dtype_row[f->t->dtype].nbytes;

	if (f->pieces.nrun)
		return gather(f, at, n, out);
	if (f->t->split)
		return between_sum(&f->group, f->t->dtype, f->local + at * size,
		                   n, out, &f->c->err);
	memcpy(out, f->local + at * size, n * size);
	return CKR_OK;
}

ckr_status
fetch_next(struct fetch *f, uint64_t at, uint64_t n, void *out)
{
	uint64_t size = dtype_row[f->t->dtype].nbytes;
	ckr_ctx *c = f->c;

	if (!f->batch.nrun)
		return of_replica(f, at, n, out);
	for (uint64_t i = 0; i < f->batch.nrun; i++) {
		struct piece_run u = pieces_run(&f->batch, i);
		uint64_t lo = u.whole > at ? u.whole : at;
		uint64_t hi = least(u.whole + u.n, at + n);
		char *to = (char *)out + (lo - at) * size;

		if (lo >= hi)
			continue;
		if (u.rank == c->env.replica)
			CKR_TRY(of_replica(f, u.local + lo - u.whole, hi - lo,
			                   to));
		CKR_TRY(team_spread(c->team, u.rank * c->world.tp, to,
		                    (int)((hi - lo) * size), &f->group.task,
		                    &c->err));
	}
	return CKR_OK;
}

void
fetch_end(struct fetch *f)
{
	free(f->packed);
	f->packed = NULL;
}

ckr_status
fetch_all(ckr_ctx *c, const struct bound *b, const struct ckr_tensor *t,
          char *dense)
{
	struct ckr_tensor w = rt_whole(c, t);
	uint64_t n = rt_nelem(&w), size = dtype_row[t->dtype].nbytes;
	struct fetch f;
	ckr_status s = fetch_begin(&f, c, b, t);

	for (uint64_t at = 0; s == CKR_OK && at < n; at += f.most)
		s = fetch_next(&f, at, least(n - at, f.most),
		               dense + at * size);
	fetch_end(&f);
	return s;
}
