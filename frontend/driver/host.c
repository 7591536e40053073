/* --device host: a profile of this machine, measured once and cached.
 *
 * what    compiles host.ck in float32 and in bf16, runs both with ckrun
 *         --profile, fits a profile to the measured times and stores it in
 *         the user's cache folder, unless the machine was too busy
 * why     ckrun, which also runs models, measures the kernels and the BLAS
 *         library that a compiled model uses
 */
#include "frontend/driver/host.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "ir/base/outfile.h"
#include "ir/text/text.h"
#include "passes/explore/explore.h"

/* Raise to invalidate cached profiles. */
enum { REVISION = 4, TEXT_MAX = 1 << 20 };

/* Mean over least time of a step.  Above this ratio the machine is too busy,
 * and the profile is not cached. */
#define QUIET 1.25

extern char **environ;

/* ---- the cache ---- */

static char *
cache_path(Arena *arena, int threads, bool make)
{
	const char *dir = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (dir && *dir == '/')
		dir = arena_str(arena, dir);
	else if (home && *home == '/')
		dir = arena_printf(arena, "%s/.cache", home);
	else
		return NULL;
	if (make)
		mkdir(dir, 0700);
	dir = arena_printf(arena, "%s/ckc", dir);
	if (make)
		mkdir(dir, 0700);
	return arena_printf(arena, "%s/host-%d-%d.json", dir, REVISION,
	                    threads);
}

static char *
read_file_text(const char *path, size_t *n, Arena *arena)
{
	FILE *f = path ? fopen(path, "rb") : NULL;
	char *text;

	if (!f)
		return NULL;
	text = arena_alloc(arena, TEXT_MAX + 1);
	*n = fread(text, 1, TEXT_MAX, f);
	fclose(f);
	return text;
}

/* A cache that cannot be written only costs time. */
static void
store_cache(const struct device_profile *d, int threads, Arena *arena)
{
	char *path = cache_path(arena, threads, true), *tmp;
	FILE *f;
	bool ok;
	int fd;

	if (!path)
		return;
	tmp = arena_printf(arena, "%s.XXXXXX", path);
	fd = mkstemp(tmp);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return;
	}
	fprintf(f, "%s\n", device_json(d, arena));
	ok = fclose(f) == 0;
	if (!ok || rename(tmp, path) != 0)
		unlink(tmp);
}

/* ---- measuring ---- */

const char *
host_runner(Arena *arena)
{
	char here[4096];
	ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
	char *slash, *path;

	if (n <= 0)
		return "ckrun";
	here[n] = 0;
	slash = strrchr(here, '/');
	if (!slash)
		return "ckrun";
	path = arena_printf(arena, "%.*s/ckrun", (int)(slash - here), here);
	return access(path, X_OK) == 0 ? path : "ckrun";
}

static bool
run_benchmark(const char *dir, int threads, const struct watch *watch,
              Arena *arena, Diag *diag)
{
	const char *argv[] = {
		host_runner(arena), arena_printf(arena, "%s/host.so", dir),
		"--feed", "ids=zeros", "--feed", "labels=zeros",
		"--feed", "image=ones", "--feed", "large=ones",
		"--steps", "8", "--quiet",
		"--threads", arena_printf(arena, "%d", threads),
		"--profile", arena_printf(arena, "%s/host.profile", dir),
		NULL
	};
	static const struct timespec nap = { 0, 2000000 };
	int status, error;
	pid_t pid, done;

	error = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv,
	                     environ);
	if (error)
		return diag_error(diag, "--device host: cannot start the "
		                  "benchmark '%s': %s", argv[0],
		                  strerror(error));
	while ((done = waitpid(pid, &status, WNOHANG)) <= 0) {
		if (done < 0 && errno != EINTR)
			return diag_error(diag, "cannot wait for '%s': %s",
			                  argv[0], strerror(errno));
		if (watch_off(watch))
			kill(pid, SIGKILL);
		nanosleep(&nap, NULL);
	}
	if (watch_off(watch))
		return diag_error(diag, "interrupted");
	return status == 0
		|| diag_error(diag, "--device host: '%s' failed", argv[0]);
}

/* Any contents serve that do not overflow. */
static void
fill_weights(Graph *g)
{
	FOR_VALS (v, g) {
		int64_t n = v->kind == V_PARAM ? val_nelem(v) : 0;
		float *x = n > 0 ? arena_array(g->arena, (size_t)n, 4) : NULL;

		for (int64_t i = 0; i < n; i++)
			x[i] = 1e-3f * (float)(i % 31 - 15);
		if (x)
			v->data = x;
	}
}

static bool
build_benchmark(const struct cli *c, const char *dir, Pass *p, Graph **graph)
{
	struct codegen_options o = cli_codegen(c, machines);
	Graph *g = text_parse("host.ck", model_host, strlen(model_host),
	                      p->diag);

	*graph = g;
	if (!g)
		return false;
	o.out_so = arena_printf(p->keep, "%s/host.so", dir);
	o.weights = arena_printf(p->keep, "%s/host.safetensors", dir);
	o.stop = p->watch ? p->watch->stop : NULL;
	fill_weights(g);
	return explore(p, g, NULL, NULL)
		&& codegen_library(&(struct codegen_schedules){
			.g = g, .plan = p->planned.plan }, &o, p->diag);
}

static void
remove_files(const char *dir, Arena *arena)
{
	static const char *const name[] = {
		"host.so", "host.safetensors", "host.profile"
	};

	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		unlink(arena_printf(arena, "%s/%s", dir, name[i]));
	rmdir(dir);
}

/* bf16: the rates of that alone. */
static bool
fit_device(struct device_profile *d, bool bf16, const Plan *plan,
           const char *dir, Arena *arena, Diag *diag)
{
	struct device_profile measured;
	size_t n;
	char *text = read_file_text(arena_printf(arena, "%s/host.profile", dir),
	                            &n, arena);

	if (!text || !device_parse(&measured, text, n, arena)
	    || !(bf16 ? device_fit16 : device_fit)(d, plan, &measured))
		return diag_error(diag, "--device host: the measurements are "
		                  "insufficient for a device profile");
	if (measured.spread > d->spread)
		d->spread = measured.spread;
	return true;
}

static bool
measure_type(struct device_profile *d, DType dtype, const struct cli *c,
             struct watch *watch, Arena *arena, Diag *diag)
{
	struct options opt = {
		.dtype = dtype, .masters = true, .optimizer = OPT_ADAMW,
		.grad_accum = 1, .fused_attention = true, .budget_bytes = -1,
		.remat = REMAT_NONE, .threads = c->opt.threads,
		.fold_limit = c->opt.fold_limit,
	};
	Pass p = { .diag = diag, .opt = &opt, .target = machines->target,
	           .keep = arena,
	           .watch = watch };
	const char *dir = outfile_folder(arena, diag);
	Graph *g = NULL;
	bool ok;

	if (!dir)
		return false;
	ok = build_benchmark(c, dir, &p, &g)
		&& run_benchmark(dir, opt.threads, watch, arena, diag)
		&& fit_device(d, dtype == DT_BF16, p.planned.plan, dir, arena,
		              diag);
	remove_files(dir, arena);
	graph_free(p.planned.reference);
	graph_free(g);
	return ok;
}

static bool
measure_host(struct device_profile *d, const struct cli *c, struct watch *watch,
             Arena *arena, Diag *diag)
{
	return measure_type(d, DT_F32, c, watch, arena, diag)
		&& measure_type(d, DT_BF16, c, watch, arena, diag);
}

/* The profile of this machine with as many threads as the options allow.
 * NULL after a diagnostic. */
static const struct device_profile *
host_device(const struct cli *c, struct watch *watch, Arena *arena, Diag *diag)
{
	int threads = c->opt.threads;
	struct device_profile *d = arena_alloc(arena, sizeof *d);
	const char *path = cache_path(arena, threads, false);
	size_t n;
	char *text = read_file_text(path, &n, arena);
	bool cached = text && device_parse(d, text, n, arena);

	if (!cached) {
		if (!measure_host(d, c, watch, arena, diag))
			return NULL;
		if (d->spread <= QUIET)
			store_cache(d, threads, arena);
		else
			diag_note(diag, "this machine is busy: the "
			          "measurements vary by a factor of %.1f and "
			          "are not cached", d->spread);
	}
	diag_note(diag, "host, %s: matrix products %.0f GFLOP/s, of bf16 %.0f, "
	          "vector ops %.0f GFLOP/s, memory %.1f GB/s, %.1f us to start "
	          "an op%s%s", cached ? "from the cache" : "measured now",
	          d->product_flops * 1e-9, d->product_flops16 * 1e-9,
	          d->vector_flops * 1e-9,
	          d->bandwidth * 1e-9, d->launch * 1e6,
	          cached ? "; to measure again, remove " : "",
	          cached ? path : "");
	return d;
}

bool
device_set(const struct cli *c, Graph *g, struct watch *watch, Arena *arena,
           Diag *diag)
{
	const char *name = c->opt.device ? c->opt.device
	                 : c->machine->device;

	g->device = !name ? NULL
		: !strcmp(name, "host") ? host_device(c, watch, arena, diag)
		: device_find(name, diag, arena);
	return !name || g->device;
}
