/* What moves between processes, bit by bit against the same between ranks of
 * one process (which test_ranks.c holds against the definition).
 *
 *	mpirun -n N test_between
 *	test_between routes
 *
 * Every process makes the operands of all ranks from one seed.  The copy
 * schedules of GPUs are carried out here for all ranks, with a library whose
 * sums are in the order of ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/dtype.h"
#include "runtime/ranks/chunked_comm.h"
#include "runtime/ranks/copy_schedule.h"

static uint32_t state = 1, faults;

static uint32_t
chance(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

/* ---- a whole collective ---- */

static ckr_status
poll_chunks(void *user, bool *done, const struct pg_task **at,
            uint64_t *moved, struct err *e)
{
	struct chunked_comm *b = user;

	*at = &b->task;
	CKR_TRY(chunked_poll(b, done, e));
	*moved = b->arrived;
	return CKR_OK;
}

/* To its end, through the group's buffers. */
static ckr_status
run_chunks(struct chunked_comm *b, struct err *e)
{
	ckr_status status;

	b->state = malloc(chunked_state_bytes(b->ranks));
	if (!b->state)
		return err_no_memory(e);
	b->out = b->team->out;
	b->in = b->team->in;
	chunked_begin(b);
	status = pg_wait(b->team, &(struct pg_poll){ poll_chunks, b }, e);
	free(b->state);
	return status;
}

/* A tensor, a split of it, and as it is on a rank. */
struct example {
	struct ckr_placement split;
	struct ckr_tensor whole, local;
};

static uint64_t
product(const int64_t *dim, int from, int to)
{
	uint64_t n = 1;

	for (int i = from; i < to; i++)
		n *= (uint64_t)dim[i];
	return n;
}

/* Cut along lead..axis into `npart` stretches. */
static void
cut(struct example *x, uint32_t ranks, int lead, int axis, int npart)
{
	struct ckr_placement *s = &x->split;
	uint64_t n = product(x->whole.dim, lead, axis + 1), pieces;

	*s = (struct ckr_placement){ .axis = (uint8_t)axis,
		.first_axis = (uint8_t)lead,
		.nsegment = (uint8_t)npart };
	do
		s->replication = 1 + chance(ranks);
	while (ranks % s->replication);
	pieces = ranks / s->replication;
	x->local = x->whole;
	for (int i = lead; i < axis; i++)
		x->local.dim[i] = 1;
	x->local.dim[axis] = 0;
	for (int k = 0; k < npart; k++) {
		s->segment[k] = k + 1 < npart ? n / (uint64_t)npart
			: n - n / (uint64_t)npart * (uint64_t)(npart - 1);
		x->local.dim[axis] += (int64_t)((s->segment[k] + pieces - 1)
		                                / pieces);
	}
}

static void
example(struct example *x, uint32_t ranks, uint8_t dtype, uint32_t most)
{
	int rank = 1 + (int)chance(3), axis = (int)chance((uint32_t)rank);
	int lead = chance(2) ? axis : (int)chance((uint32_t)axis + 1);

	*x = (struct example){ .whole = { .dtype = dtype,
		.rank = (uint8_t)rank } };
	for (int i = 0; i < rank; i++)
		x->whole.dim[i] = 3 + chance(most);
	cut(x, ranks, lead, axis, lead == axis ? 1 + (int)chance(3) : 1);
}

static uint64_t
bytes(const struct ckr_tensor *t)
{
	return product(t->dim, 0, t->rank) * dtype_row[t->dtype].nbytes;
}

/* Numbers whose sum depends on the order; of 16 bits, any but the largest. */
static void
fill(void *p, uint8_t dtype, uint64_t nbytes)
{
	for (uint64_t i = 0; i < nbytes / dtype_row[dtype].nbytes; i++) {
		float x = ((float)chance(1 << 20) - 500000.f)
			/ (float)(1 + chance(5000));
		uint16_t h = (uint16_t)(chance(1 << 16) & 0xbbff);

		if (dtype == CKR_F32)
			memcpy((char *)p + 4 * i, &x, 4);
		else
			memcpy((char *)p + 2 * i, &h, 2);
	}
}

/* ---- schedules ---- */

static unsigned taken;                  /* of enum schedule_kind */

/* Of all ranks. */
struct gpus {
	uint32_t ranks;
	uint8_t dtype;
	struct copy_schedule schedule[CKR_MAX_GROUP];
	char *x[CKR_MAX_GROUP], *y[CKR_MAX_GROUP], *scratch[CKR_MAX_GROUP];
};

static void
copy(const struct copy_list *list, char *to, const char *from)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct strided_copy *m = &list->one[i];

		for (uint64_t k = 0; k < m->rows; k++)
			memcpy(to + m->to + k * m->to_pitch,
			       from + m->from + k * m->from_pitch, m->width);
	}
}

/* What rank r gives the library, and where it gets what comes. */
static char *
given_by(const struct gpus *g, uint32_t r)
{
	return g->schedule[r].packs ? g->scratch[r] : g->x[r];
}

static char *
taken_by(const struct gpus *g, uint32_t r)
{
	return g->schedule[r].unpacks ? g->scratch[r] : g->y[r];
}

static void
all_gather(const struct gpus *g, uint32_t r)
{
	for (uint32_t k = 0; k < g->ranks; k++) {
		faults += g->schedule[k].shard_bytes
			!= g->schedule[r].shard_bytes;
		memcpy(taken_by(g, r) + k * g->schedule[r].shard_bytes,
		       given_by(g, k), g->schedule[r].shard_bytes);
	}
}

/* Out of x, into y, whatever else a schedule says. */
static void
broadcast(const struct gpus *g, uint32_t r)
{
	const struct copy_schedule *o = &g->schedule[r];

	for (uint32_t q = 0; q < o->nshard; q++) {
		faults += g->schedule[q * o->replication].span[q].n
			!= o->span[q].n;
		memcpy(g->y[r] + o->span[q].at, g->x[q * o->replication],
		       o->span[q].n);
	}
}

/* What each has at its own place, added up. */
static void
sum(const struct gpus *g, const uint64_t at[], uint64_t nbytes, char *y)
{
	const void *x[CKR_MAX_GROUP];

	for (uint32_t r = 0; r < g->ranks; r++)
		x[r] = given_by(g, r) + at[r];
	comm_reduce(g->dtype, false, x, g->ranks,
	            nbytes / dtype_row[g->dtype].nbytes, y);
}

static void
zero_tail(const struct gpus *g, uint32_t r)
{
	memset(g->y[r] + g->schedule[r].tail.at, 0, g->schedule[r].tail.n);
}

static void
reduce_scatter(const struct gpus *g, uint32_t r)
{
	uint64_t at[CKR_MAX_GROUP];

	for (uint32_t k = 0; k < g->ranks; k++) {
		faults += g->schedule[k].shard_bytes
			!= g->schedule[r].shard_bytes;
		at[k] = r * g->schedule[k].shard_bytes;
	}
	sum(g, at, g->schedule[r].shard_bytes, taken_by(g, r));
	zero_tail(g, r);
}

/* The owner of a piece gets the sum, and hands it on to those behind it. */
static void
reduce(const struct gpus *g, uint32_t r)
{
	const struct copy_schedule *o = &g->schedule[r];
	uint32_t q = r / o->replication, owner = q * o->replication;
	uint64_t at[CKR_MAX_GROUP];

	if (r != owner) {
		memcpy(g->y[r], g->y[owner], o->shard_bytes);
		return;
	}
	for (uint32_t k = 0; k < g->ranks; k++) {
		faults += g->schedule[k].span[q].n != o->span[q].n;
		at[k] = g->schedule[k].span[q].at;
	}
	sum(g, at, o->span[q].n, g->y[r]);
	zero_tail(g, r);
}

/* Between two ranks' scratch; what a rank keeps stays where it is. */
static void
exchange(const struct gpus *g, uint32_t r)
{
	for (uint32_t k = 0; k < g->ranks; k++) {
		struct byte_range out = g->schedule[k].out[r];
		struct byte_range in = g->schedule[r].in[k];

		faults += out.n != in.n;
		if (k != r)
			memcpy(g->scratch[r] + in.at, g->scratch[k] + out.at,
			       in.n);
	}
}

/* What rank r gets, and nothing more than backend_nccl.c asks for. */
static void
receive(const struct gpus *g, uint32_t r)
{
	static void (*const how[])(const struct gpus *, uint32_t) = {
		[SCHED_ALL_GATHER] = all_gather,
		[SCHED_BROADCAST] = broadcast,
		[SCHED_REDUCE_SCATTER] = reduce_scatter,
		[SCHED_REDUCE] = reduce, [SCHED_EXCHANGE] = exchange,
	};

	if (how[g->schedule[r].kind])
		how[g->schedule[r].kind](g, r);
}

static void
run_schedules(struct gpus *g, const struct ckr_comm *w,
              const struct ckr_tensor *tx, const struct ckr_tensor *ty)
{
	for (uint32_t r = 0; r < g->ranks; r++) {
		struct copy_schedule *o = &g->schedule[r];

		if (!schedule_build(o, w, g->ranks, r, tx, ty))
			exit(1);
		taken |= 1u << o->kind;
		g->scratch[r] = malloc(o->workspace + 1);
		memset(g->scratch[r], o->clear_workspace ? 0 : 0xa5,
		       o->workspace);
		if (o->clear_y)
			memset(g->y[r], 0, bytes(ty));
		copy(&o->pack, g->scratch[r], g->x[r]);
	}
	for (uint32_t r = 0; r < g->ranks; r++) {
		struct copy_schedule *o = &g->schedule[r];

		receive(g, r);
		copy(&o->unpack, g->y[r],
		     o->kind == SCHED_LOCAL_SHARD ? g->x[r] : g->scratch[r]);
	}
	for (uint32_t r = 0; r < g->ranks; r++) {
		schedule_free(&g->schedule[r]);
		free(g->scratch[r]);
	}
}

static void
check_schedule(uint32_t ranks, const struct ckr_comm *w,
               const struct ckr_tensor *tx, const struct ckr_tensor *ty)
{
	struct gpus g = { .ranks = ranks, .dtype = tx->dtype };
	void *y[CKR_MAX_GROUP];
	struct comm all = { .what = w, .tx = tx, .ty = ty,
		.x = (void **)g.x, .y = y, .ranks = ranks, .threads = 1 };

	if (w->kind == CKR_ALL_REDUCE)
		return;
	for (uint32_t r = 0; r < ranks; r++) {
		g.x[r] = malloc(bytes(tx) + 1);
		g.y[r] = malloc(bytes(ty) + 1);
		y[r] = malloc(bytes(ty) + 1);
		fill(g.x[r], tx->dtype, bytes(tx));
		memset(g.y[r], 0xa5, bytes(ty));
	}
	comm_run(&all);
	run_schedules(&g, w, tx, ty);
	for (uint32_t r = 0; r < ranks; r++) {
		if (memcmp(g.y[r], y[r], bytes(ty))) {
			fprintf(stderr, "rank %u of %u: route of kind %u "
			        "differs\n", r, ranks, w->kind);
			faults++;
		}
		free(g.x[r]);
		free(g.y[r]);
		free(y[r]);
	}
}

/* ---- processes ---- */

static void
run_one(struct process_group *t, const struct ckr_comm *w,
        const struct ckr_tensor *tx, const struct ckr_tensor *ty)
{
	void *x[CKR_MAX_GROUP], *y[CKR_MAX_GROUP];
	struct comm all = { .what = w, .tx = tx, .ty = ty, .x = x, .y = y,
		.ranks = t->size, .threads = 1 };
	struct chunked_comm one = { .team = t, .rank = t->rank,
		.ranks = t->size, .what = w, .tx = tx, .ty = ty, .threads = 1,
		.task = { .op = "test" } };
	char *mine;
	struct err e;

	if (!t->out) {
		check_schedule(t->size, w, tx, ty);
		return;
	}
	mine = malloc(bytes(ty) + 1);
	for (uint32_t r = 0; r < t->size; r++) {
		x[r] = malloc(bytes(tx) + 1);
		y[r] = malloc(bytes(ty) + 1);
		fill(x[r], tx->dtype, bytes(tx));
	}
	memset(mine, 0xa5, bytes(ty));
	comm_run(&all);
	one.x = x[t->rank];
	one.y = mine;
	if (run_chunks(&one, &e) != CKR_OK) {
		fprintf(stderr, "%s\n", e.text);
		pg_abort(t, 1);
	}
	if (memcmp(mine, y[t->rank], bytes(ty))) {
		fprintf(stderr, "rank %u of %u: kind %u, type %u differs\n",
		        t->rank, t->size, w->kind, tx->dtype);
		faults++;
	}
	for (uint32_t r = 0; r < t->size; r++) {
		free(x[r]);
		free(y[r]);
	}
	free(mine);
}

enum { JOINED = 5 };

/* Operands of one collective of a message, of all ranks, and what this one gets
 * of it. */
struct member {
	struct example of;
	struct ckr_comm what;
	const struct ckr_tensor *tx, *ty;
	void *x[CKR_MAX_GROUP], *y[CKR_MAX_GROUP];
	char *mine;
};

static void
make_member(struct member *m, struct process_group *t, uint8_t kind)
{
	static const uint8_t types[] = { CKR_F32, CKR_BF16, CKR_F16 };
	bool gathers = kind == CKR_ALL_GATHER;

	do
		example(&m->of, t->size, types[chance(3)], 12);
	while (m->of.split.replication > 1);
	m->what = (struct ckr_comm){ .kind = kind,
		.placement = &m->of.split };
	m->tx = gathers ? &m->of.local : &m->of.whole;
	m->ty = gathers ? &m->of.whole : &m->of.local;
	m->mine = malloc(bytes(m->ty) + 1);
	memset(m->mine, 0xa5, bytes(m->ty));
	for (uint32_t r = 0; r < t->size; r++) {
		m->x[r] = malloc(bytes(m->tx) + 1);
		m->y[r] = malloc(bytes(m->ty) + 1);
		fill(m->x[r], m->tx->dtype, bytes(m->tx));
	}
	comm_run(&(struct comm){ .what = &m->what, .tx = m->tx, .ty = m->ty,
		.x = m->x, .y = m->y, .ranks = t->size, .threads = 1 });
}

static void
check_member(const struct member *m, const struct process_group *t, int n)
{
	if (memcmp(m->mine, m->y[t->rank], bytes(m->ty))) {
		fprintf(stderr, "rank %u of %u: kind %u, joined as number %d, "
		        "differs\n", t->rank, t->size, m->what.kind, n);
		faults++;
	}
	for (uint32_t r = 0; r < t->size; r++) {
		free(m->x[r]);
		free(m->y[r]);
	}
	free(m->mine);
}

/* Several in one message. */
static void
run_joined(struct process_group *t, uint8_t kind)
{
	struct member m[JOINED];
	struct joined_comm part[JOINED];
	int n = 2 + (int)chance(JOINED - 1);
	struct chunked_comm all = { .team = t, .rank = t->rank,
		.ranks = t->size, .what = &m[0].what, .joined = part,
		.threads = 1, .task = { .op = "test" } };
	struct err e;

	for (int i = 0; i < n; i++) {
		make_member(&m[i], t, kind);
		part[i] = (struct joined_comm){ .what = &m[i].what,
			.tx = m[i].tx, .x = m[i].x[t->rank],
			.y = m[i].mine };
		faults += !chunked_join(&part[i], i ? &part[i - 1] : NULL,
		                        t->size);
	}
	all.tx = m[0].tx;
	if (run_chunks(&all, &e) != CKR_OK || all.arrived != 1) {
		fprintf(stderr, "%d in %d messages: %s\n", n, (int)all.arrived,
		        e.text);
		pg_abort(t, 1);
	}
	for (int i = 0; i < n; i++)
		check_member(&m[i], t, i);
}

/* Three stretches of which none fits into a part. */
static void
large_example(struct example *x, uint32_t ranks, uint8_t dtype)
{
	*x = (struct example){ .whole = { .dtype = dtype, .rank = 3,
		.dim = { 2, 1999, 700 } } };
	cut(x, ranks, 1, 1, 3);
}

/* Every kind. */
static void
run_all(struct process_group *t, bool large)
{
	static const uint8_t types[] = { CKR_F32, CKR_BF16, CKR_F16 };

	for (unsigned i = 0; i < (large ? 1 : 3); i++) {
		struct example x, to;
		struct ckr_comm w = { .placement = &x.split };

		if (large)
			large_example(&x, t->size, types[i]);
		else
			example(&x, t->size, types[i], 12);
		to = x;
		cut(&to, t->size, 0, x.whole.rank - 1, 1);
		w.to = &to.split;
		run_one(t, &w, &x.whole, &x.whole);
		w.max = 1;
		run_one(t, &w, &x.whole, &x.whole);
		w.max = 0;
		w.kind = CKR_ALL_GATHER;
		run_one(t, &w, &x.local, &x.whole);
		w.kind = CKR_REDUCE_SCATTER;
		run_one(t, &w, &x.whole, &x.local);
		w.kind = CKR_ALL_TO_ALL;
		run_one(t, &w, &x.local, &to.local);
		w.kind = CKR_LOCAL_SHARD;
		run_one(t, &w, &x.whole, &x.local);
		w.kind = CKR_LOCAL_SHARD_GRAD;
		run_one(t, &w, &x.local, &x.whole);
	}
}

/* One rank fails after another; who was first is what all are told. */
static void
agree(struct process_group *t)
{
	struct pg_task w = { .op = "agreement" };
	struct err e = { .text = "" };
	struct pg_vote v = { .flags = 1u << t->rank };

	if (pg_agree(t, &v, &w, &e) != CKR_OK
	    || v.flags != (1u << t->size) - 1)
		faults++;
	v = (struct pg_vote){ .order = 9 - t->rank };
	if (t->rank)
		v.status = err_set(&e, CKR_EDATA, "of rank %u", t->rank);
	if (pg_agree(t, &v, &w, &e) != CKR_EDATA || !e.known
	    || e.mute != (t->rank != 0) || strncmp(e.text, "of rank ", 8)
	    || (uint32_t)atoi(e.text + 8) != t->size - 1)
		faults++;
}

/* One is busy for longer than even files may take, and alive: the others say
 * so, and end. */
static int
be_late(void)
{
	struct pg_task w = { .op = "saving", .patient = true };
	struct pg_vote v = { .status = CKR_OK };
	struct process_group *t;
	struct err e;

	if (pg_open(&t, 1, &e) != CKR_OK || !t)
		return 1;
	if (t->rank)
		sleep(12);
	if (pg_agree(t, &v, &w, &e) != CKR_ERANK)
		return 1;
	fprintf(stderr, "%s\n", e.text);
	pg_abort(t, 3);
	return 0;
}

/* Two machines, between which the launcher goes to and fro (two_machines.c): the
 * ranks of one are neighbours. */
static int
check_order(void)
{
	const char *text = getenv("OMPI_COMM_WORLD_RANK");
	uint32_t process = (uint32_t)atoi(text ? text : getenv("RANK"));
	struct process_group *t;
	struct err e;
	uint32_t want;

	if (pg_open(&t, 60, &e) != CKR_OK || !t)
		return 1;
	want = process % 2 * ((t->size + 1) / 2) + process / 2;
	if (t->rank != want) {
		fprintf(stderr, "process %u is rank %u, expected %u\n", process,
		        t->rank, want);
		faults++;
	}
	run_all(t, false);
	pg_close(t);
	return faults ? 1 : 0;
}

/* As processes, but for a team that has no memory: it is none. */
static int
check_schedules(void)
{
	struct process_group none = { .size = 1 };

	for (int n = 0; n < 400; n++, none.size = none.size % 8 + 1)
		run_all(&none, false);
	/* every way but the sum of all, which has none */
	if (taken != (2u << SCHED_EXCHANGE) - 1 - (1u << SCHED_ALL_REDUCE)) {
		fprintf(stderr, "of the ways %#x were taken\n", taken);
		faults++;
	}
	return faults ? 1 : 0;
}

int
main(int argc, char **argv)
{
	struct process_group *t;
	struct err e;

	if (argc > 1 && !strcmp(argv[1], "late"))
		return be_late();
	if (argc > 1 && !strcmp(argv[1], "routes"))
		return check_schedules();
	if (argc > 1 && !strcmp(argv[1], "order"))
		return check_order();
	if (pg_open(&t, 60, &e) != CKR_OK || !t) {
		fprintf(stderr, "%s\n", t ? "" : e.text);
		return 1;
	}
	for (int n = 0; n < 20; n++) {
		run_all(t, false);
		run_joined(t, CKR_ALL_GATHER);
		run_joined(t, CKR_REDUCE_SCATTER);
	}
	run_all(t, true);
	agree(t);
	pg_close(t);
	return faults ? 1 : 0;
}
