/* There is one process group per process: MPI can be initialized once, and not
 * again after its end.  Socket connections are kept in the same way. */
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

static struct open_group *the_team;
static struct open_group *failed_groups;

static struct open_group *
open_of(struct process_group *t)
{
	return (struct open_group *)t;  /* its first member */
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

/* MPI if there is a module and a launcher for it, else sockets if the
 * environment has the address of a rendezvous. */
static ckr_status
load_link(struct open_group *t, const struct launch *l, struct err *e)
{
	void *dl = l->torch ? NULL : find_module();

	if (l->torch || (!dl && l->size && getenv("MASTER_ADDR"))) {
		t->transport = &socket_transport;
		return CKR_OK;
	}
	if (!dl)
		return err_set(e, CKR_EUNSUPPORTED, "started as one of several "
		               "processes (%s is set), which need " MODULE
		               ": %s; build with MPI (libopenmpi-dev), or "
		               "start one process, which trains all ranks",
		               l->by, dlerror());
	t->transport = dlsym(dl, "ckr_transport");
	if (!t->transport || t->transport->version != CKR_TRANSPORT_VERSION)
		return err_set(e, CKR_EUNSUPPORTED, MODULE " has another "
		               "version than this program");
	return CKR_OK;
}

/* ---- coming and leaving ---- */

/* When the process ends, so that models can be opened one after the other.
 * With one still open it ends by a failure, of which the
 * launcher informs the others. */
static void
leave_at_exit(void)
{
	struct open_group *t = the_team;

	if (!t || t->users)
		return;
	watchdog_set(t->heartbeat, t->timeout,
	             "timed out waiting for other processes to leave the run");
	/* the word of the heartbeat is the link's */
	heartbeat_set_word(t->heartbeat, NULL);
	t->transport->close();
	heartbeat_stop(t->heartbeat);
	free(t->team.out);
	free(t->team.in);
	free(t->local);
	free(t->answered);
	free(t->count);
	free(t->at);
	free(t);
	the_team = NULL;
}

/* MPI of another make than the launcher sees one process. */
static ckr_status
check_place(const struct open_group *t, const struct launch *l, struct err *e)
{
	if (!l->size || t->place.size == l->size)
		return CKR_OK;
	return err_set(e, CKR_EUNSUPPORTED, "the launcher started %u "
	               "processes, MPI sees %u: start them with the mpirun of "
	               "the MPI that " MODULE " was built with, or with srun "
	               "--mpi=pmix", l->size, t->place.size);
}

static ckr_status
alloc_buffers(struct open_group *t, struct err *e)
{
	size_t n = t->place.size;

	t->team.out = malloc(PG_BUFFER);
	t->team.in = malloc(PG_BUFFER);
	t->local = calloc(t->place.nlocal, sizeof(*t->local));
	t->answered = calloc(n, sizeof(*t->answered));
	t->count = calloc(n, sizeof(*t->count));
	t->at = calloc(n, sizeof(*t->at));
	if (!t->team.out || !t->team.in || !t->local || !t->answered
	    || !t->count || !t->at)
		return err_no_memory(e);
	/* so that it is there */
	memset(t->team.out, 0, PG_BUFFER);
	memset(t->team.in, 0, PG_BUFFER);
	return CKR_OK;
}

static ckr_status
join_run(struct open_group *t, struct err *e)
{
	const char *why;

	t->heartbeat = heartbeat_start();
	if (!t->heartbeat)
		return err_no_memory(e);
	/* a link that knows who has not come is to report it first */
	watchdog_set(t->heartbeat, t->timeout + 5,
	             "timed out waiting for all processes to join the run");
	t->place.timeout = t->timeout;
	why = t->transport->open(&t->place);
	watchdog_set(t->heartbeat, 0, NULL);
	if (why)
		return err_set(e, CKR_ERANK, "%s cannot start: %s",
		               t->transport->name, why);
	t->team.rank = t->place.rank;
	t->team.size = t->place.size;
	t->team.nlocal = t->place.nlocal;
	for (uint32_t i = 0; i < t->place.nlocal; i++)
		if (t->place.local[i] == t->place.rank) {
			heartbeat_set_word(t->heartbeat, t->place.heartbeat[i]);
			t->team.local_rank = i;
		}
	return CKR_OK;
}

static ckr_status
start_team(const struct launch *l, double timeout, struct err *e)
{
	struct open_group *t = calloc(1, sizeof(*t));
	ckr_status s = t ? load_link(t, l, e) : err_no_memory(e);

	if (s == CKR_OK) {
		t->timeout = timeout;
		s = join_run(t, e);
	}
	if (s == CKR_OK)
		s = check_place(t, l, e);
	if (s == CKR_OK)
		s = alloc_buffers(t, e);
	if (!t)
		return s;
	if (s != CKR_OK) {
		/* what has begun so far ends with the process */
		t->failed = failed_groups;
		failed_groups = t;
		return s;
	}
	the_team = t;
	atexit(leave_at_exit);
	return CKR_OK;
}

enum { MOST_PROCESSES = 65536 };

ckr_status
pg_open(struct process_group **t, double timeout, struct err *e)
{
	struct launch l = launch_find();

	*t = NULL;
	if (!l.by)
		return CKR_OK;
	if (l.wrong)
		return err_set(e, CKR_EARG, "expected numbers in RANK and "
		               "WORLD_SIZE, found '%s' and '%s'; to run a "
		               "single process, unset MASTER_ADDR",
		               getenv("RANK"),
		               getenv("WORLD_SIZE"));
	if (l.size > MOST_PROCESSES || (l.size && l.rank >= l.size))
		return err_set(e, CKR_EARG, "%s, %s: expected at most %d "
		               "processes, found process %u of %u", l.by,
		               l.size_by, MOST_PROCESSES, l.rank, l.size);
	if (!the_team)
		CKR_TRY(start_team(&l, timeout, e));
	the_team->timeout = timeout;
	the_team->users++;
	*t = &the_team->team;
	return CKR_OK;
}

void
pg_close(struct process_group *t)
{
	if (t)
		open_of(t)->users--;
}

void
pg_abort(struct process_group *t, int status)
{
	open_of(t)->transport->abort(status);
}

void
pg_set_watchdog(struct process_group *t, const char *message)
{
	watchdog_set(open_of(t)->heartbeat, message ? open_of(t)->timeout : 0,
	             message);
}

/* ---- transfers ---- */

static ckr_status
transport_error(const char *why, const struct pg_task *w, struct err *e)
{
	return why ? err_set(e, CKR_ERANK, "%s: %s", w->op, why) : CKR_OK;
}

ckr_status
pg_begin_allgather(struct process_group *team, enum comm_group g,
                   const void *from, int n, const struct transport_side *to,
                   const struct pg_task *w, struct err *e)
{
	return transport_error(
		open_of(team)->transport->allgather(g, from, n, to), w, e);
}

ckr_status
pg_begin_alltoall(struct process_group *team, enum comm_group g,
                  const struct transport_side *from,
                  const struct transport_side *to, const struct pg_task *w,
                  struct err *e)
{
	return transport_error(open_of(team)->transport->alltoall(g, from, to),
	                       w, e);
}

ckr_status
pg_test(struct process_group *team, enum comm_group g, bool *done,
        const struct pg_task *w, struct err *e)
{
	return transport_error(open_of(team)->transport->test(g, done), w, e);
}

/* The only transfer of its group. */
struct sole_transfer {
	struct process_group *team;
	enum comm_group group;
	const struct pg_task *task;
};

static ckr_status
poll_transfer(void *user, bool *done, const struct pg_task **at,
              uint64_t *moved, struct err *e)
{
	const struct sole_transfer *a = user;

	*at = a->task;
	*moved = 0;
	return pg_test(a->team, a->group, done, a->task, e);
}

static ckr_status
await_transfer(struct process_group *team, enum comm_group g,
               const struct pg_task *w, struct err *e)
{
	struct sole_transfer a = { team, g, w };

	return pg_wait(team, &(struct pg_poll){ poll_transfer, &a }, e);
}

struct sole_message {
	struct process_group *team;
	struct transport_message *message;
	const struct pg_task *task;
};

static ckr_status
poll_message(void *user, bool *done, const struct pg_task **at,
             uint64_t *moved, struct err *e)
{
	const struct sole_message *a = user;
	const char *why = open_of(a->team)->transport->test_message(a->message);

	*at = a->task;
	*moved = 0;
	*done = a->message->done;
	return transport_error(why, a->task, e);
}

ckr_status
pg_begin_message(struct process_group *team, struct transport_message *m,
                 const struct pg_task *w, struct err *e)
{
	return transport_error(open_of(team)->transport->begin_message(m), w,
	                       e);
}

ckr_status
pg_await_message(struct process_group *team, struct transport_message *m,
                 const struct pg_task *w, struct err *e)
{
	struct sole_message a = { team, m, w };

	return pg_wait(team, &(struct pg_poll){ poll_message, &a }, e);
}

ckr_status
pg_split(struct process_group *team, const struct comm_mesh *mesh,
         struct err *e)
{
	struct open_group *t = open_of(team);
	const char *why;

	watchdog_set(t->heartbeat, t->timeout,
	             "timed out waiting for all processes to join the run");
	why = t->transport->split(mesh);
	watchdog_set(t->heartbeat, 0, NULL);
	return why ? err_set(e, CKR_ERANK, "%s", why) : CKR_OK;
}

ckr_status
pg_allgather(struct process_group *team, enum comm_group g, const void *from,
             int n, const struct transport_side *to, const struct pg_task *w,
             struct err *e)
{
	CKR_TRY(pg_begin_allgather(team, g, from, n, to, w, e));
	return await_transfer(team, g, w, e);
}

ckr_status
pg_allgather_equal(struct process_group *team, const void *mine, int n,
                   void *all, const struct pg_task *w, struct err *e)
{
	struct open_group *t = open_of(team);
	struct transport_side to = { all, t->count, t->at };

	for (uint32_t r = 0; r < team->size; r++) {
		t->count[r] = n;
		t->at[r] = (int)r * n;
	}
	return pg_allgather(team, COMM_ALL, mine, n, &to, w, e);
}

ckr_status
pg_broadcast(struct process_group *team, uint32_t from, void *data, int n,
             const struct pg_task *w, struct err *e)
{
	struct open_group *t = open_of(team);
	struct transport_side to = { team->in, t->count, t->at };
	bool mine = from == team->rank;

	for (uint32_t r = 0; r < team->size; r++) {
		t->count[r] = r == from ? n : 0;
		t->at[r] = 0;
	}
	CKR_TRY(pg_allgather(team, COMM_ALL, data, mine ? n : 0, &to, w, e));
	if (!mine)
		memcpy(data, team->in, (size_t)n);
	return CKR_OK;
}

/* ---- agreement ---- */

static uint32_t
first_failure(const struct pg_vote *v, uint32_t n)
{
	uint32_t first = n;

	for (uint32_t r = 0; r < n; r++)
		if (v[r].status != CKR_OK
		    && (first == n || v[r].order < v[first].order))
			first = r;
	return first;
}

ckr_status
pg_agree(struct process_group *team, struct pg_vote *vote,
         const struct pg_task *w, struct err *e)
{
	struct pg_vote *all = (struct pg_vote *)team->in, won = *vote;
	uint32_t first;

	CKR_TRY(pg_allgather_equal(team, vote, sizeof(*vote), all, w, e));
	first = first_failure(all, team->size);
	for (uint32_t r = 0; r < team->size; r++) {
		won.flags |= all[r].flags;
		if (all[r].most > won.most)
			won.most = all[r].most;
	}
	if (first < team->size) {
		won.status = all[first].status;
		won.order = all[first].order;
		CKR_TRY(pg_broadcast(team, first, e->text, sizeof(e->text), w,
		                     e));
		e->known = true;
		e->mute = team->rank != 0;
	}
	*vote = won;
	return vote->status;
}
