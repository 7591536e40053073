/* Waiting for other processes, and finding those that do not arrive.
 *
 * A process that waits looks at the clock and at the heartbeats of its local
 * ranks.  When time is up, or a heartbeat has stopped, it sends an out-of-band
 * message to all others; those that wait too answer by one to all others; those
 * that do not answer are named.
 *
 * Time is added up between looks, of which none counts for more than a second:
 * a process that was stopped itself has not waited meanwhile.
 */
#include "runtime/team/inside.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/support/now.h"

/* Seconds: without a heartbeat, unless that is more than half of the longest
 * wait; then for answers; between looks. */
static const double STOPPED = 12, ANSWER = 3, LOOK = 0.1, MOST = 1;

/* Whoever reads or writes files may take so many times as long: one that is
 * alive is not late for an hour, by the default. */
enum { PATIENT = 6 };

enum { SPIN = 100, YIELD = 4000, NAP = 50000 };

/* Processors may be fewer than processes. */
static void
back_off(uint64_t turn)
{
	if (turn > YIELD)
		nanosleep(&(struct timespec){ .tv_nsec = NAP }, NULL);
	else if (turn > SPIN)
		sched_yield();
}

static double
silence_limit(const struct open_group *t)
{
	return t->timeout < 2 * STOPPED ? t->timeout / 2 : STOPPED;
}

/* Whether a process of this machine has stopped; dt: seconds since the last
 * look. */
static bool
check_local_ranks(struct open_group *t, double dt)
{
	bool stopped = false;

	for (uint32_t i = 0; i < t->place.nlocal; i++) {
		struct local_peer *m = &t->local[i];
		unsigned beat = atomic_load(t->place.heartbeat[i]);

		m->silent = beat == m->beat ? m->silent + dt : 0;
		m->beat = beat;
		stopped |= m->silent > silence_limit(t);
	}
	return stopped;
}

static bool
drain_oob(struct open_group *t)
{
	uint32_t from;
	uint64_t word;
	bool any = false;

	while (t->transport->receive_oob(&from, &word)) {
		t->answered[from] = true;
		any = true;
	}
	return any;
}

static void
collect_answers(struct open_group *t, uint64_t word)
{
	double end = now_sec() + ANSWER;

	t->answered[t->team.rank] = true;
	t->transport->send_oob(word);
	while (now_sec() < end) {
		bool done;

		/* these messages move while transfers are tested */
		for (int g = 0; g < COMM_GROUPS; g++)
			t->transport->test((enum comm_group)g, &done);
		drain_oob(t);
		back_off(YIELD + 1);
	}
}

struct rank_list {
	char text[400];
	uint32_t count;
};

static void
append_rank(struct rank_list *l, uint32_t rank)
{
	err_append(l->text, sizeof(l->text), "%s%u", l->count++ ? ", " : "",
	           rank);
}

static const char *
plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

const char *
pg_task_text(char *buf, size_t size, const struct pg_task *w)
{
	char name[NAME_TEXT];

	*buf = '\0';
	if (w->step)
		err_append(buf, size, "step %llu: ",
		           (unsigned long long)w->step);
	err_append(buf, size, "%s", w->op);
	if (w->of && *w->of)
		err_append(buf, size, " of '%s'",
		           err_name(name, sizeof(name), w->of));
	if (w->bytes)
		err_append(buf, size, " (%llu bytes)",
		           (unsigned long long)w->bytes);
	return buf;
}

static ckr_status
report_timeout(struct open_group *t, const struct pg_task *w, double waited,
               struct err *e)
{
	struct rank_list here = { .count = 0 }, gone = { .count = 0 };
	char task[2 * NAME_TEXT];
	bool still = false;
	ckr_status s;

	collect_answers(t, w->step);
	for (uint32_t r = 0; r < t->team.size; r++)
		append_rank(t->answered[r] ? &here : &gone, r);
	for (uint32_t i = 0; i < t->place.nlocal; i++)
		still |= !t->answered[t->place.local[i]]
			&& t->local[i].silent > silence_limit(t);
	pg_task_text(task, sizeof(task), w);
	if (!gone.count)
		s = err_set(e, CKR_ERANK, "%s: deadlock: all ranks wait for "
		            "each other",
		            task);
	else if (still)
		s = err_set(e, CKR_ERANK, "%s: rank%s %s: stopped or gone (no "
		            "heartbeat for %.0f s); rank%s %s waited", task,
		            plural(gone.count), gone.text, silence_limit(t),
		            plural(here.count), here.text);
	else
		s = err_set(e, CKR_ERANK, "%s: rank%s %s did not arrive within "
		            "%.0f s; rank%s %s waited", task,
		            plural(gone.count), gone.text, waited,
		            plural(here.count), here.text);
	for (uint32_t r = 0; r < t->team.rank; r++)
		e->mute |= t->answered[r];
	return s;
}

/* All the time that somebody waits. */
struct wait_state {
	double looked, waited;
	uint64_t moved, turn;
};

/* Now and then: whether who does not come is still there. */
static ckr_status
check_progress(struct open_group *t, const struct pg_task *w,
               struct wait_state *p, struct err *e)
{
	double now = now_sec(), dt = now - p->looked;

	if (dt < LOOK)
		return CKR_OK;
	dt = dt < MOST ? dt : MOST;
	p->waited += dt;
	p->looked = now;
	if (drain_oob(t) || check_local_ranks(t, dt)
	    || p->waited > (w->patient ? PATIENT : 1) * t->timeout)
		return report_timeout(t, w, p->waited, e);
	return CKR_OK;
}

ckr_status
pg_wait(struct process_group *team, const struct pg_poll *l, struct err *e)
{
	struct open_group *t = (struct open_group *)team; /* its first member */
	struct wait_state p = { .looked = now_sec() };

	for (;;) {
		const struct pg_task *w;
		uint64_t moved;
		bool done;

		CKR_TRY(l->look(l->user, &done, &w, &moved, e));
		if (done)
			return CKR_OK;
		if (moved != p.moved)
			p = (struct wait_state){ .looked = p.looked,
				.moved = moved };
		back_off(p.turn++);
		CKR_TRY(check_progress(t, w, &p, e));
	}
}
