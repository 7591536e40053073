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

#include "runtime/team/link.h"

extern const struct ckr_link ckr_link;

enum { MOST = 64, ROOM = 64 << 20, DELAY = 100 };       /* us */

static const struct ckr_link *real;

static struct {
	uint32_t size, tp, state;
	/* the transfer */
	enum link_group group;
	bool all;                       /* gather */
	const void *from;
	int n;
	struct link_side out, to, in;   /* in: to here */
	int count[3][MOST], at[3][MOST];
	char *room;
	unsigned before, after;         /* tests still to come */
	bool begun, arrived;
} late;

static const char *
open_late(struct link_place *place)
{
	void *dl = dlopen(getenv("LATE_LINK"), RTLD_NOW);
	const char *why;

	real = dl ? dlsym(dl, "ckr_link") : NULL;
	late.room = malloc(ROOM);
	if (!real || !late.room)
		return "cannot be late";
	why = real->open(place);
	late.size = place->size;
	late.state = place->rank + 1;
	return why;
}

static const char *
divide_late(uint32_t tp)
{
	late.tp = tp;
	return real->divide(tp);
}

static uint32_t
ranks_of(enum link_group g)
{
	return g == LINK_ALL ? late.size : g == LINK_TP ? late.tp
	       : late.size / late.tp;
}

static unsigned
chance(unsigned n)
{
	late.state = late.state * 1664525u + 1013904223u;
	return (late.state >> 8) % n;
}

static void
keep(struct link_side *side, int k, const struct link_side *from)
{
	size_t n = ranks_of(late.group) * sizeof(int);

	memcpy(late.count[k], from->count, n);
	memcpy(late.at[k], from->at, n);
	*side = (struct link_side){ from->base, late.count[k], late.at[k] };
}

static void
spoil(void)
{
	for (uint32_t r = 0; r < ranks_of(late.group); r++)
		if (late.to.count[r])
			memset((char *)late.to.base + late.to.at[r], 0xff,
			       (size_t)late.to.count[r]);
}

static void
begin(enum link_group g, const struct link_side *to)
{
	int end = 0;

	late.group = g;
	keep(&late.to, 0, to);
	late.in = (struct link_side){ late.room, late.to.count, late.at[1] };
	for (uint32_t r = 0; r < ranks_of(g); r++) {
		late.at[1][r] = end;
		end += late.to.count[r];
	}
	late.before = chance(4);
	late.after = chance(4);
	late.begun = late.arrived = false;
	/* what is sent may lie there: an all-gather in place */
	if (!late.all)
		spoil();
}

static const char *
gather(enum link_group g, const void *from, int n, const struct link_side *to)
{
	late.all = true;
	late.from = from;
	late.n = n;
	begin(g, to);
	return NULL;
}

static const char *
exchange(enum link_group g, const struct link_side *from,
         const struct link_side *to)
{
	late.all = false;
	late.group = g;
	keep(&late.out, 2, from);
	begin(g, to);
	return NULL;
}

static void
deliver(void)
{
	for (uint32_t r = 0; r < ranks_of(late.group); r++)
		if (late.to.count[r])
			memcpy((char *)late.to.base + late.to.at[r],
			       late.room + late.in.at[r],
			       (size_t)late.to.count[r]);
}

static const char *
test(bool *done)
{
	const char *why = NULL;

	*done = false;
	if (late.before) {
		late.before--;
		usleep(DELAY);
		return NULL;
	}
	if (!late.begun) {
		late.begun = true;
		return late.all ? real->gather(late.group, late.from, late.n,
		                               &late.in)
		       : real->exchange(late.group, &late.out, &late.in);
	}
	if (!late.arrived)
		why = real->test(&late.arrived);
	if (why || !late.arrived)
		return why;
	if (late.after) {
		late.after--;
		spoil();
		usleep(DELAY);
		return NULL;
	}
	deliver();
	*done = true;
	return NULL;
}

static void
tell(uint64_t word)
{
	real->tell(word);
}

static bool
hear(uint32_t *from, uint64_t *word)
{
	return real->hear(from, word);
}

static void
abort_late(int status)
{
	real->abort(status);
}

static void
close_late(void)
{
	free(late.room);
	real->close();
}

const struct ckr_link ckr_link = {
	.version = CKR_LINK_VERSION, .open = open_late, .divide = divide_late,
	.gather = gather, .exchange = exchange, .test = test, .tell = tell,
	.hear = hear, .abort = abort_late, .close = close_late,
};
