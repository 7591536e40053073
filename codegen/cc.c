/* Running a compiler: exec'ed, never through a shell; what it says is
 * shown only when it fails. */
#include "codegen/cc.h"

#include <errno.h>
#include <fcntl.h>
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
run_child(const char *dir, const char *const *argv)
{
	int log;

	setpgid(0, 0);
	if (setenv("TMPDIR", dir, 1) || chdir(dir))
		_exit(126);
	log = open("cc.log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(126);
	execvp(argv[0], (char *const *)argv);
	_exit(errno == ENOENT || errno == EACCES || errno == ENOTDIR
	      ? 127 : 126);
}

/* Wait for the compiler, looking at *stop; false after a diagnostic. */
static bool
wait_for(pid_t pid, const char *name, const volatile sig_atomic_t *stop,
         int *status, Diag *d)
{
	static const struct timespec nap = { 0, 2000000 };
	pid_t done;

	while ((done = waitpid(pid, status, stop ? WNOHANG : 0)) <= 0) {
		if (done < 0 && errno != EINTR)
			return diag_error(d, "waiting for '%s': %s", name,
			                  strerror(errno));
		if (stop && *stop) {
			kill(-pid, SIGKILL);
			waitpid(pid, status, 0);
			return diag_error(d, "interrupted");
		}
		if (stop)
			nanosleep(&nap, NULL);
	}
	return true;
}

static void
show_log(const char *dir, Arena *a, Diag *d)
{
	const char *path = arena_printf(a, "%s/cc.log", dir);
	FILE *f = fopen(path, "r");
	char line[512];
	int n = 0;

	if (!f)
		return;
	while (fgets(line, sizeof line, f) && n++ < MAX_LINES) {
		line[strcspn(line, "\n")] = '\0';
		diag_note(d, "%s", line);
	}
	fclose(f);
}

void
cc_program(struct command *c, const char *words, Arena *a)
{
	c->n = split_command(c->argv, words, a);
}

void
cc_add(struct command *c, const char *arg)
{
	if (c->n && c->n < CC_ARGS)
		c->argv[c->n++] = arg;
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
cc_run(const char *dir, struct command *c, const volatile sig_atomic_t *stop,
       Arena *a, Diag *d)
{
	const char *const *argv = c->argv;
	int status;
	pid_t pid;

	if (c->n == 0)
		return diag_error(d, "no %s given; %s", c->what, c->remedy);
	c->argv[c->n] = NULL;
	pid = fork();
	if (pid < 0)
		return diag_error(d, "cannot start '%s': %s", argv[0],
		                  strerror(errno));
	if (pid == 0)
		run_child(dir, argv);
	setpgid(pid, pid);
	if (!wait_for(pid, argv[0], stop, &status, d))
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return access(arena_printf(a, "%s/model.so", dir), F_OK) == 0
			|| diag_error(d, "the %s '%s' wrote nothing", c->what,
			              argv[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return diag_error(d, "cannot run the %s '%s': not found; %s",
		                  c->what, argv[0], c->remedy);
	if (WIFSIGNALED(status))
		diag_error(d, "the %s '%s' was killed by signal %d", c->what,
		           argv[0], WTERMSIG(status));
	else
		diag_error(d, "the %s '%s' failed (status %d) in '%s'",
		           c->what, argv[0], WEXITSTATUS(status), dir);
	show_log(dir, a, d);
	return false;
}
