/* Running the C compiler: exec'ed, never through a shell; what it says is
 * shown only when it fails. */
#include "codegen/codegen.h"
#include "codegen/cc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARG = 64, MAX_LINES = 40 };

/* -fno-trapping-math only says that nobody looks at the floating-point
 * exception flags; results stay IEEE's. */
static const char *const fixed[] = {
	"-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno",
	"-fno-trapping-math", "-fwrapv", "-fopenmp", "-fPIC", "-shared",
	"-fvisibility=hidden",
#ifdef __x86_64__
	/* some compilers shy away from AVX-512 where it is twice as fast */
	"-mprefer-vector-width=512",
#endif
};

static const char *
march_flag(const struct codegen_options *opt, Arena *a)
{
	return arena_printf(a, "-march=%s", opt->march ? opt->march : "native");
}

const char *
cc_flags(const struct codegen_options *opt, Arena *a)
{
	const char *s = march_flag(opt, a);

	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		s = arena_printf(a, "%s%s%s", s, i % 5 == 4 ? "\n *     " : " ",
		                 fixed[i]);
	return s;
}

/* The command's words; "cc -m64" is two.  The compiler runs in a folder of
 * its own, so that a relative path to it is made absolute here. */
static int
split_command(const char **argv, const char *cc, Arena *a)
{
	char here[4096];
	char *rest = arena_str(a, cc && *cc ? cc : "cc"), *word;
	int n = 0;

	while ((word = strtok_r(rest, " \t", &rest)) && n < MAX_ARG / 2)
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

bool
cc_run(const char *dir, const struct codegen_options *opt, Arena *a, Diag *d)
{
	const char *argv[MAX_ARG];
	int n = split_command(argv, opt->cc, a), status;
	pid_t pid;

	if (n == 0)
		return diag_error(d, "no C compiler given; try --cc gcc");
	argv[n++] = march_flag(opt, a);
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		argv[n++] = fixed[i];
	if (opt->werror) {
		argv[n++] = "-Wall";
		argv[n++] = "-Wextra";
		argv[n++] = "-Werror";
	} else {
		argv[n++] = "-w";
	}
	argv[n++] = "-o";
	argv[n++] = "model.so";
	argv[n++] = "model.c";
	argv[n++] = "-lm";
	argv[n] = NULL;

	pid = fork();
	if (pid < 0)
		return diag_error(d, "cannot start '%s': %s", argv[0],
		                  strerror(errno));
	if (pid == 0)
		run_child(dir, argv);
	setpgid(pid, pid);
	if (!wait_for(pid, argv[0], opt->stop, &status, d))
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return access(arena_printf(a, "%s/model.so", dir), F_OK) == 0
			|| diag_error(d, "the C compiler '%s' wrote nothing",
			              argv[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return diag_error(d, "cannot run the C compiler '%s': not "
			"found; install gcc or clang, or name one with --cc",
			argv[0]);
	if (WIFSIGNALED(status))
		diag_error(d, "the C compiler '%s' was killed by signal %d",
		           argv[0], WTERMSIG(status));
	else
		diag_error(d, "the C compiler '%s' failed (status %d) in '%s'",
		           argv[0], WEXITSTATUS(status), dir);
	show_log(dir, a, d);
	return false;
}
