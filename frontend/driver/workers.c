/* Each piece of work is a child, which is a copy of this process and writes its
 * result to a pipe.  Whatever a piece leaves behind goes with it, and a piece
 * that crashes takes no other with it.
 */
#include "frontend/driver/workers.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/support/now.h"

enum { MOST = 8, WHY = 120 };

struct child {
	pid_t pid;                      /* 0: none */
	int fd;                         /* reads its result */
	int piece;
	size_t got;                     /* bytes of the result */
};

struct pool {
	const struct workers *w;
	struct child child[MOST];
	int n;                          /* children at once */
};

static bool
write_all(int fd, const char *from, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, from, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		from += k;
		n -= (size_t)k;
	}
	return true;
}

static char *
result_of(const struct workers *w, int i)
{
	return (char *)w->result + (size_t)i * w->size;
}

static bool
start(struct pool *p, struct child *c, int piece)
{
	const struct workers *w = p->w;
	int fd[2];

	if (pipe(fd))
		return false;
	*c = (struct child){ .pid = fork(), .fd = fd[0], .piece = piece };
	if (c->pid == 0) {
		close(fd[0]);
		w->work(w->of, piece, result_of(w, piece));
		_exit(!write_all(fd[1], result_of(w, piece), w->size));
	}
	close(fd[1]);
	if (c->pid > 0)
		return true;
	c->pid = 0;
	close(fd[0]);
	return false;
}

/* The child has closed its pipe. */
static void
finish(struct pool *p, struct child *c)
{
	char why[WHY] = "its process wrote no result";
	int status = 0;

	close(c->fd);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	if (c->got == p->w->size)
		return;
	if (WIFSIGNALED(status))
		snprintf(why, sizeof why, "its process ended by signal %d (%s)",
		         WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		snprintf(why, sizeof why, "its process ended with status %d",
		         WEXITSTATUS(status));
	p->w->lost(p->w->of, c->piece, why);
}

/* Reads what there is of a result; false: the pipe is closed. */
static bool
receive(const struct pool *p, struct child *c)
{
	ssize_t n = read(c->fd, result_of(p->w, c->piece) + c->got,
	                 p->w->size - c->got);

	if (n > 0)
		c->got += (size_t)n;
	return n > 0 ? c->got < p->w->size : n < 0 && errno == EINTR;
}

/* Milliseconds until the end, as poll takes them. */
static int
time_left(const struct workers *w)
{
	double sec = w->end - now_sec();

	return w->end <= 0 || sec > 1e6 ? -1
		: sec <= 0 ? 0 : (int)(sec * 1e3) + 1;
}

static void
await_any(struct pool *p)
{
	struct pollfd fd[MOST];
	int nfd = 0, of[MOST];

	for (int i = 0; i < p->n; i++)
		if (p->child[i].pid) {
			of[nfd] = i;
			fd[nfd++] = (struct pollfd){ p->child[i].fd, POLLIN,
			                             0 };
		}
	if (poll(fd, (nfds_t)nfd, time_left(p->w)) <= 0)
		return;
	for (int i = 0; i < nfd; i++)
		if (fd[i].revents && !receive(p, &p->child[of[i]]))
			finish(p, &p->child[of[i]]);
}

static bool
is_stopped(const struct workers *w)
{
	return w->stop && *w->stop;
}

static bool
is_over(const struct workers *w)
{
	return is_stopped(w) || time_left(w) == 0;
}

static void
end_all(struct pool *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->child[i].pid) {
			kill(p->child[i].pid, SIGKILL);
			p->child[i].got = p->w->size;   /* nothing is lost */
			finish(p, &p->child[i]);
		}
}

static bool
any_runs(const struct pool *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->child[i].pid)
			return true;
	return false;
}

/* Start work on every free place; the next piece. */
static int
start_free(struct pool *p, int next, int n)
{
	for (int i = 0; i < p->n && next < n; i++) {
		if (p->child[i].pid)
			continue;
		if (p->w->prepare)
			p->w->prepare(p->w->of, next);
		if (!start(p, &p->child[i], next))
			p->w->lost(p->w->of, next, "no process for it");
		next++;
	}
	return next;
}

bool
workers_run(const struct workers *w, int n)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct pool p = { .w = w,
		.n = cores < 1 ? 1 : cores > MOST ? MOST : (int)cores };
	int next = 0;

	while (!is_over(w) && (next < n || any_runs(&p))) {
		next = start_free(&p, next, n);
		if (any_runs(&p))
			await_any(&p);
	}
	end_all(&p);
	return !is_stopped(w);
}
