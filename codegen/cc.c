/* Run compilers by exec, never through a shell.  Their output is shown only if
 * they fail. */
#include "codegen/cc.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LINES = 40 };

/* The command's words; "cc -m64" is two.  The compiler runs in a folder of
 * its own, so that a relative path to it is made absolute here. */
static int
split_command(const char **argv, const char *cc, Arena *a)
{
	char here[4096];
	char *rest = arena_str(a, cc), *word;
	int n = 0;

	while ((word = strtok_r(rest, " \t", &rest)) && n < CC_ARGS / 2)
		argv[n++] = word;
	if (n && argv[0][0] != '/' && strchr(argv[0], '/')
	    && getcwd(here, sizeof here))
		argv[0] = arena_printf(a, "%s/%s", here, argv[0]);
	return n;
}

static void
run_child(const char *dir, const struct command *c, const char *log_name)
{
	const char *const *argv = c->argv;
	int log;

	setpgid(0, 0);
	if (setenv("TMPDIR", dir, 1) || chdir(dir))
		_exit(126);
	log = open(log_name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(126);
	execvp(argv[0], (char *const *)argv);
	_exit(errno == ENOENT || errno == EACCES || errno == ENOTDIR
	      ? 127 : 126);
}

static const char *
log_of(const struct command *c, Arena *a)
{
	return arena_printf(a, "%s.log", c->makes);
}

static void
show_log(const char *dir, const struct command *c, Arena *a, Diag *d)
{
	const char *path = arena_printf(a, "%s/%s", dir, log_of(c, a));
	FILE *f = fopen(path, "r");
	char line[512];
	int n = 0;

	if (!f)
		return;
	while (fgets(line, sizeof line, f) && n++ < MAX_LINES) {
		line[strcspn(line, "\n")] = '\0';
		diag_more(d, "%s", line);
	}
	fclose(f);
}

/* Commands, and the process of each: 0 before it begins and when it has
 * ended. */
struct batch {
	const char *dir;
	struct command *command;
	pid_t *pid;
	int n, begun, running;
	Arena *arena;
	Diag *diag;
};

static bool
start_command(struct batch *b)
{
	struct command *c = &b->command[b->begun];
	const char *log = log_of(c, b->arena);
	pid_t pid = fork();

	if (pid < 0)
		return diag_error(b->diag, "cannot start '%s': %s",
		                  c->argv[0], strerror(errno));
	if (pid == 0)
		run_child(b->dir, c, log);
	setpgid(pid, pid);
	b->pid[b->begun++] = pid;
	b->running++;
	return true;
}

/* How a command ended; false after a diagnostic. */
static bool
check_status(const struct batch *b, const struct command *c, int status)
{
	const char *program = c->argv[0];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return access(arena_printf(b->arena, "%s/%s", b->dir,
		                           c->makes), F_OK) == 0
			|| diag_error(b->diag, "the %s '%s' wrote no output "
			              "file",
			              c->what, program);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return diag_error(b->diag, "cannot run the %s '%s': not "
		                  "found; %s", c->what, program, c->remedy);
	if (WIFSIGNALED(status))
		diag_error(b->diag, "the %s '%s' was killed by signal %d",
		           c->what, program, WTERMSIG(status));
	else
		diag_error(b->diag, "the %s '%s' failed (status %d) in '%s'",
		           c->what, program, WEXITSTATUS(status), b->dir);
	show_log(b->dir, c, b->arena, b->diag);
	return false;
}

/* Look who has ended. */
static bool
reap_commands(struct batch *b)
{
	for (int i = 0; i < b->begun; i++) {
		int status;
		pid_t done = b->pid[i] ? waitpid(b->pid[i], &status, WNOHANG)
		                       : 0;

		if (done < 0 && errno != EINTR)
			return diag_error(b->diag, "cannot wait for '%s': %s",
			                  b->command[i].argv[0],
			                  strerror(errno));
		if (done <= 0)
			continue;
		b->pid[i] = 0;
		b->running--;
		if (!check_status(b, &b->command[i], status))
			return false;
	}
	return true;
}

/* Each has a group of its own: what it has started goes with it. */
static void
end_all(struct batch *b)
{
	for (int i = 0; i < b->begun; i++)
		if (b->pid[i])
			kill(-b->pid[i], SIGKILL);
	for (int i = 0; i < b->begun; i++)
		while (b->pid[i] && waitpid(b->pid[i], NULL, 0) < 0
		       && errno == EINTR)
			;
}

static int
processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

static bool
run_batch(struct batch *b, const volatile sig_atomic_t *stop)
{
	static const struct timespec nap = { 0, 1000000 };
	int most = processors();

	while (b->begun < b->n || b->running) {
		if (stop && *stop)
			return diag_error(b->diag, "interrupted");
		if (b->begun < b->n && b->running < most) {
			if (!start_command(b))
				return false;
			continue;
		}
		nanosleep(&nap, NULL);
		if (!reap_commands(b))
			return false;
	}
	return true;
}

void
cc_add(struct command *c, const char *arg)
{
	if (c->n && c->n < CC_ARGS)
		c->argv[c->n++] = arg;
}

static void
add_words(struct command *c, const char *const *word)
{
	while (*word)
		cc_add(c, *word++);
}

struct command
cc_command(const struct compiler *of, const char *words, const char *arch,
           bool strict, Arena *a)
{
	static const char *const quiet[] = { "-w", NULL };
	struct command c = { .what = of->what, .remedy = of->remedy };

	c.n = c.given = split_command(c.argv, words, a);
	if (of->arch)
		cc_add(&c, arena_printf(a, "%s%s", of->arch, arch));
	add_words(&c, of->fixed);
	add_words(&c, strict ? of->strict : quiet);
	return c;
}

const char *
cc_text(const struct command *c, Arena *a)
{
	const char *s = "";

	for (int i = 0; i < c->n; i++)
		s = arena_printf(a, "%s%s%s", s, i == 0 ? ""
		                 : i % 5 == 0 ? "\n *     " : " ", c->argv[i]);
	return s;
}

bool
cc_run(const char *dir, struct command *c, int n,
       const volatile sig_atomic_t *stop, Arena *a, Diag *d)
{
	struct batch b = { .dir = dir, .command = c, .n = n, .arena = a,
	                   .diag = d,
	                   .pid = arena_array(a, (size_t)n, sizeof *b.pid) };
	bool ok;

	for (int i = 0; i < n; i++) {
		if (c[i].n == 0)
			return diag_error(d, "no %s given; %s", c[i].what,
			                  c[i].remedy);
		c[i].argv[c[i].n] = NULL;
	}
	ok = run_batch(&b, stop);
	end_all(&b);
	return ok;
}
