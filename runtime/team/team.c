/* One team in a process: MPI can be begun once, and not again after its end,
 * which is the process's.  Connections are kept alike. */
#include "runtime/team/inside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/support/path.h"
#include "runtime/team/launch.h"
#include "runtime/team/socket.h"

#define MODULE "ckr_mpi.so"

static struct open_team *the_team;

static struct open_team *
open_of(struct team *t)
{
	return (struct open_team *)t;   /* its first member */
}

/* ---- the module ---- */

static void *
load_from(const char *folder, const char *below)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s/" MODULE, folder, below);
	return dlopen(path, RTLD_NOW | RTLD_NODELETE);
}

/* Beside the program, as in a build tree; where it is installed; wherever the
 * system looks. */
static void *
find_module(void)
{
	const char *given = getenv("CKR_MPI");
	char *self, *folder;
	void *dl = NULL;

	if (given && *given)
		return dlopen(given, RTLD_NOW | RTLD_NODELETE);
	self = realpath("/proc/self/exe", NULL);
	folder = self ? path_folder(self) : NULL;
	if (folder)
		dl = load_from(folder, "");
	if (!dl && folder)
		dl = load_from(folder, "/../" CKR_MODULES);
	free(self);
	free(folder);
	if (!dl)
		dl = load_from(CKR_PREFIX "/" CKR_MODULES, "");
	return dl ? dl : dlopen(MODULE, RTLD_NOW | RTLD_NODELETE);
}

/* Without MPI an address to meet at will do. */
static ckr_status
load(struct open_team *t, const struct launch *l, struct err *e)
{
	void *dl = l->torch ? NULL : find_module();

	if (l->torch || (!dl && l->size && getenv("MASTER_ADDR"))) {
		t->link = &socket_link;
		return CKR_OK;
	}
	if (!dl)
		return err_set(e, CKR_EUNSUPPORTED, "started as one of several "
		               "processes (%s is set), which need " MODULE
		               ": %s; build with MPI (libopenmpi-dev), or "
		               "start one process, which trains all ranks",
		               l->by, dlerror());
	t->link = dlsym(dl, "ckr_link");
	if (!t->link || t->link->version != CKR_LINK_VERSION)
		return err_set(e, CKR_EUNSUPPORTED, MODULE " is of another "
		               "version than this program");
	return CKR_OK;
}

/* ---- coming and leaving ---- */

/* When the process ends, so that models can be opened one after the other.
 * With one still open it ends by a failure, which others are to hear of: the
 * launcher sees to that. */
static void
leave(void)
{
	struct open_team *t = the_team;

	if (!t || t->users)
		return;
	pulse_limit(t->pulse, t->timeout,
	            "other processes do not leave the run");
	/* its word is the link's */
	pulse_count(t->pulse, NULL);
	t->link->close();
	pulse_stop(t->pulse);
	free(t->team.out);
	free(t->team.in);
	free(t->mate);
	free(t->answered);
	free(t->count);
	free(t->at);
	free(t);
	the_team = NULL;
}

/* MPI of another make than the launcher sees one process. */
static ckr_status
check_place(const struct open_team *t, const struct launch *l, struct err *e)
{
	if (!l->size || t->place.size == l->size)
		return CKR_OK;
	return err_set(e, CKR_EUNSUPPORTED, "the launcher started %u "
	               "processes, MPI sees %u: start them by the mpirun of "
	               "the MPI that " MODULE " was built with, or by srun "
	               "--mpi=pmix", l->size, t->place.size);
}

static ckr_status
take_memory(struct open_team *t, struct err *e)
{
	size_t n = t->place.size;

	t->team.out = malloc(TEAM_ROOM);
	t->team.in = malloc(TEAM_ROOM);
	t->mate = calloc(t->place.nmate, sizeof(*t->mate));
	t->answered = calloc(n, sizeof(*t->answered));
	t->count = calloc(n, sizeof(*t->count));
	t->at = calloc(n, sizeof(*t->at));
	if (!t->team.out || !t->team.in || !t->mate || !t->answered
	    || !t->count || !t->at)
		return err_set(e, CKR_ENOMEM, "out of memory");
	/* so that it is there */
	memset(t->team.out, 0, TEAM_ROOM);
	memset(t->team.in, 0, TEAM_ROOM);
	return CKR_OK;
}

static ckr_status
come(struct open_team *t, struct err *e)
{
	const char *why;

	t->pulse = pulse_start();
	if (!t->pulse)
		return err_set(e, CKR_ENOMEM, "out of memory");
	/* a link that can tell who has not come is to have done so */
	pulse_limit(t->pulse, t->timeout + 5,
	            "not all processes have come to begin the run");
	t->place.timeout = t->timeout;
	why = t->link->open(&t->place);
	pulse_limit(t->pulse, 0, NULL);
	if (why)
		return err_set(e, CKR_ERANK, "%s does not begin: %s",
		               t->link->name, why);
	t->team.rank = t->place.rank;
	t->team.size = t->place.size;
	t->team.mates = t->place.nmate;
	for (uint32_t i = 0; i < t->place.nmate; i++)
		if (t->place.mate[i] == t->place.rank) {
			pulse_count(t->pulse, t->place.pulse[i]);
			t->team.mate = i;
		}
	return CKR_OK;
}

static ckr_status
begin(const struct launch *l, double timeout, struct err *e)
{
	struct open_team *t = calloc(1, sizeof(*t));
	ckr_status s = t ? load(t, l, e)
	               : err_set(e, CKR_ENOMEM, "out of memory");

	if (s == CKR_OK) {
		t->timeout = timeout;
		s = come(t, e);
	}
	if (s == CKR_OK)
		s = check_place(t, l, e);
	if (s == CKR_OK)
		s = take_memory(t, e);
	/* what has begun so far ends with the process */
	if (s == CKR_OK)
		the_team = t;
	if (s == CKR_OK)
		atexit(leave);
	return s;
}

enum { MOST_PROCESSES = 65536 };

ckr_status
team_open(struct team **t, double timeout, struct err *e)
{
	struct launch l = launch_find();

	*t = NULL;
	if (!l.by)
		return CKR_OK;
	if (l.wrong)
		return err_set(e, CKR_EARG, "expected numbers in RANK and "
		               "WORLD_SIZE, found '%s' and '%s'; without "
		               "MASTER_ADDR a run is alone", getenv("RANK"),
		               getenv("WORLD_SIZE"));
	if (l.size > MOST_PROCESSES || (l.size && l.rank >= l.size))
		return err_set(e, CKR_EARG, "%s, %s: expected a process of at "
		               "most %d, found number %u of %u", l.by,
		               l.size_by, MOST_PROCESSES, l.rank, l.size);
	if (!the_team)
		CKR_TRY(begin(&l, timeout, e));
	the_team->timeout = timeout;
	the_team->users++;
	*t = &the_team->team;
	return CKR_OK;
}

void
team_close(struct team *t)
{
	if (t)
		open_of(t)->users--;
}

void
team_abort(struct team *t, int status)
{
	open_of(t)->link->abort(status);
}

void
team_limit(struct team *t, const char *message)
{
	pulse_limit(open_of(t)->pulse, message ? open_of(t)->timeout : 0,
	            message);
}

/* ---- transfers ---- */

static ckr_status
failed(const char *why, const struct team_task *w, struct err *e)
{
	return why ? err_set(e, CKR_ERANK, "%s: %s", w->op, why) : CKR_OK;
}

ckr_status
team_begin_gather(struct team *team, enum link_group g, const void *from,
                  int n, const struct link_side *to, const struct team_task *w,
                  struct err *e)
{
	return failed(open_of(team)->link->gather(g, from, n, to), w, e);
}

ckr_status
team_begin_exchange(struct team *team, enum link_group g,
                    const struct link_side *from, const struct link_side *to,
                    const struct team_task *w, struct err *e)
{
	return failed(open_of(team)->link->exchange(g, from, to), w, e);
}

ckr_status
team_test(struct team *team, enum link_group g, bool *done,
          const struct team_task *w, struct err *e)
{
	return failed(open_of(team)->link->test(g, done), w, e);
}

/* The only transfer of its group. */
struct alone {
	struct team *team;
	enum link_group group;
	const struct team_task *task;
};

static ckr_status
look_alone(void *user, bool *done, const struct team_task **at,
           uint64_t *moved, struct err *e)
{
	const struct alone *a = user;

	*at = a->task;
	*moved = 0;
	return team_test(a->team, a->group, done, a->task, e);
}

static ckr_status
finish(struct team *team, enum link_group g, const struct team_task *w,
       struct err *e)
{
	struct alone a = { team, g, w };

	return team_await(team, &(struct team_look){ look_alone, &a }, e);
}

ckr_status
team_divide(struct team *team, uint32_t tp, struct err *e)
{
	struct open_team *t = open_of(team);
	const char *why;

	pulse_limit(t->pulse, t->timeout,
	            "not all processes have come to begin the run");
	why = t->link->divide(tp);
	pulse_limit(t->pulse, 0, NULL);
	return why ? err_set(e, CKR_ERANK, "%s", why) : CKR_OK;
}

ckr_status
team_gather(struct team *team, enum link_group g, const void *from, int n,
            const struct link_side *to, const struct team_task *w,
            struct err *e)
{
	CKR_TRY(team_begin_gather(team, g, from, n, to, w, e));
	return finish(team, g, w, e);
}

ckr_status
team_share(struct team *team, const void *mine, int n, void *all,
           const struct team_task *w, struct err *e)
{
	struct open_team *t = open_of(team);
	struct link_side to = { all, t->count, t->at };

	for (uint32_t r = 0; r < team->size; r++) {
		t->count[r] = n;
		t->at[r] = (int)r * n;
	}
	return team_gather(team, LINK_ALL, mine, n, &to, w, e);
}

ckr_status
team_spread(struct team *team, uint32_t from, void *data, int n,
            const struct team_task *w, struct err *e)
{
	struct open_team *t = open_of(team);
	struct link_side to = { team->in, t->count, t->at };
	bool mine = from == team->rank;

	for (uint32_t r = 0; r < team->size; r++) {
		t->count[r] = r == from ? n : 0;
		t->at[r] = 0;
	}
	CKR_TRY(team_gather(team, LINK_ALL, data, mine ? n : 0, &to, w, e));
	if (!mine)
		memcpy(data, team->in, (size_t)n);
	return CKR_OK;
}

/* ---- agreement ---- */

static uint32_t
first_failure(const struct team_vote *v, uint32_t n)
{
	uint32_t first = n;

	for (uint32_t r = 0; r < n; r++)
		if (v[r].status != CKR_OK
		    && (first == n || v[r].order < v[first].order))
			first = r;
	return first;
}

ckr_status
team_agree(struct team *team, struct team_vote *vote,
           const struct team_task *w, struct err *e)
{
	struct team_vote *all = (struct team_vote *)team->in, won = *vote;
	uint32_t first;

	CKR_TRY(team_share(team, vote, sizeof(*vote), all, w, e));
	first = first_failure(all, team->size);
	for (uint32_t r = 0; r < team->size; r++) {
		won.flags |= all[r].flags;
		if (all[r].most > won.most)
			won.most = all[r].most;
	}
	if (first < team->size) {
		won.status = all[first].status;
		won.order = all[first].order;
		CKR_TRY(team_spread(team, first, e->text, sizeof(e->text), w,
		                    e));
		e->known = true;
		e->mute = team->rank != 0;
	}
	*vote = won;
	return vote->status;
}
