/* A module of message passing that delivers as late as it may: around the one
 * that LATE_LINK names.
 *
 * What is begun is begun in earnest some tests later, so that whoever changes
 * what it sends too early is found; where it goes to is overwritten until the
 * test that ends it, so that whoever reads too early is found.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/team/transport.h"

extern const struct ckr_transport ckr_transport;

enum { MOST = 64, ROOM = 64 << 20, DELAY = 100 };       /* us */

static const struct ckr_transport *real;

/* The transfer of a group. */
struct lane {
	bool all;                       /* gather */
	const void *from;
	int n;
	struct transport_side out, to, in;   /* in: to here */
	int count[3][MOST], at[3][MOST];
	char *room;
	unsigned before, after;         /* tests still to come */
	bool begun, arrived, done;
};

static struct {
	struct comm_mesh mesh;
	uint32_t size, rank, state;
	struct lane of[COMM_GROUPS];
} late;

static const char *
open_late(struct transport_place *place)
{
	void *dl = dlopen(getenv("LATE_LINK"), RTLD_NOW);
	const char *why;

	real = dl ? dlsym(dl, "ckr_transport") : NULL;
	for (int g = 0; g < COMM_GROUPS; g++) {
		late.of[g].room = malloc(ROOM);
		late.of[g].done = true;
		if (!late.of[g].room)
			return "cannot be late";
	}
	if (!real)
		return "cannot be late";
	why = real->open(place);
	late.size = place->size;
	late.rank = place->rank;
	late.state = place->rank + 1;
	return why;
}

static const char *
divide_late(const struct comm_mesh *mesh)
{
	late.mesh = *mesh;
	return real->split(mesh);
}

static uint32_t
ranks_of(enum comm_group g)
{
	return g == COMM_ALL ? late.size
			     : comm_ranks_of(&late.mesh, g, late.rank).n;
}

static unsigned
chance(unsigned n)
{
	late.state = late.state * 1664525u + 1013904223u;
	return (late.state >> 8) % n;
}

static void
keep(enum comm_group g, struct transport_side *side, int k,
     const struct transport_side *from)
{
	struct lane *l = &late.of[g];
	size_t n = ranks_of(g) * sizeof(int);

	memcpy(l->count[k], from->count, n);
	memcpy(l->at[k], from->at, n);
	*side = (struct transport_side){ from->base, l->count[k], l->at[k] };
}

static void
spoil(enum comm_group g)
{
	const struct transport_side *to = &late.of[g].to;

	for (uint32_t r = 0; r < ranks_of(g); r++)
		if (to->count[r])
			memset((char *)to->base + to->at[r], 0xff,
			       (size_t)to->count[r]);
}

static void
begin(enum comm_group g, const struct transport_side *to)
{
	struct lane *l = &late.of[g];
	int end = 0;

	keep(g, &l->to, 0, to);
	l->in = (struct transport_side){ l->room, l->to.count, l->at[1] };
	for (uint32_t r = 0; r < ranks_of(g); r++) {
		l->at[1][r] = end;
		end += l->to.count[r];
	}
	l->before = chance(4);
	l->after = chance(4);
	l->begun = l->arrived = l->done = false;
	/* what is sent may lie there: an all-gather in place */
	if (!l->all)
		spoil(g);
}

static const char *
gather(enum comm_group g, const void *from, int n,
       const struct transport_side *to)
{
	if (!late.of[g].done)
		return "another transfer is under way";
	late.of[g].all = true;
	late.of[g].from = from;
	late.of[g].n = n;
	begin(g, to);
	return NULL;
}

static const char *
exchange(enum comm_group g, const struct transport_side *from,
         const struct transport_side *to)
{
	if (!late.of[g].done)
		return "another transfer is under way";
	late.of[g].all = false;
	keep(g, &late.of[g].out, 2, from);
	begin(g, to);
	return NULL;
}

static void
deliver(enum comm_group g)
{
	struct lane *l = &late.of[g];

	for (uint32_t r = 0; r < ranks_of(g); r++)
		if (l->to.count[r])
			memcpy((char *)l->to.base + l->to.at[r],
			       l->room + l->in.at[r], (size_t)l->to.count[r]);
}

static const char *
test(enum comm_group g, bool *done)
{
	struct lane *l = &late.of[g];
	const char *why = NULL;

	*done = l->done;
	if (l->done)
		return NULL;
	if (l->before) {
		l->before--;
		usleep(DELAY);
		return NULL;
	}
	if (!l->begun) {
		l->begun = true;
		return l->all ? real->allgather(g, l->from, l->n, &l->in)
		       : real->alltoall(g, &l->out, &l->in);
	}
	if (!l->arrived)
		why = real->test(g, &l->arrived);
	if (why || !l->arrived)
		return why;
	if (l->after) {
		l->after--;
		spoil(g);
		usleep(DELAY);
		return NULL;
	}
	deliver(g);
	*done = l->done = true;
	return NULL;
}

static void
tell(uint64_t word)
{
	real->send_oob(word);
}

static const char *
begin_message(struct transport_message *m)
{
	return real->begin_message(m);
}

static const char *
test_message(struct transport_message *m)
{
	return real->test_message(m);
}

static bool
hear(uint32_t *from, uint64_t *word)
{
	return real->receive_oob(from, word);
}

static void
abort_late(int status)
{
	real->abort(status);
}

static void
close_late(void)
{
	for (int g = 0; g < COMM_GROUPS; g++)
		free(late.of[g].room);
	real->close();
}

const struct ckr_transport ckr_transport = {
	.version = CKR_TRANSPORT_VERSION, .name = "late MPI", .open = open_late,
	.split = divide_late, .allgather = gather, .alltoall = exchange,
	.test = test, .begin_message = begin_message,
	.test_message = test_message, .send_oob = tell,
	.receive_oob = hear, .abort = abort_late, .close = close_late,
};
