#include "frontend/driver/outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/base/outfile.h"
#include "passes/report/report.h"
#include "runtime/support/path.h"

/* The text without the given ending, or if NULL without any ".xyz". */
static const char *
without_suffix(const char *s, const char *suffix, Arena *a)
{
	const char *dot = suffix ? s + strlen(s) - strlen(suffix)
	                         : strrchr(s, '.');

	if (suffix && (strlen(s) <= strlen(suffix) || strcmp(dot, suffix)))
		return s;
	return dot && dot > s ? arena_printf(a, "%.*s", (int)(dot - s), s) : s;
}

struct outputs
outputs_name(const char *model, const char *out, Arena *a)
{
	struct outputs o = { .so = out };

	if (!out)
		o.so = arena_printf(a, "%s.so", without_suffix(
			path_base(model), NULL, a));
	o.weights = arena_printf(a, "%s.safetensors",
	                         without_suffix(o.so, ".so", a));
	return o;
}

static bool
same_file(const char *p, const char *q)
{
	return outfile_is_stdout(p) || outfile_is_stdout(q)
		? strcmp(p, q) == 0 : path_same(p, q);
}

/* Whether the folder can take a new file. */
static bool
can_create(const char *path, Diag *d)
{
	char *dir = path_folder(path);
	bool ok = dir && !access(dir, W_OK | X_OK);

	if (!ok)
		diag_error(d, "cannot write '%s': folder '%s': %s", path,
		           dir ? dir : "?", strerror(errno));
	free(dir);
	return ok;
}

/* Reports may go to a device or pipe; a library and its weights may not. */
static bool
can_write(const char *path, bool report, Diag *d)
{
	struct stat st;
	bool there = !stat(path, &st);

	if (outfile_is_stdout(path))
		return report || diag_error(d, "cannot write a library to "
		                            "standard output; try: -o "
		                            "MODEL.so");
	if (there && S_ISDIR(st.st_mode))
		return diag_error(d, "cannot write '%s': it is a folder", path);
	if (there && !S_ISREG(st.st_mode))
		return (report && !access(path, W_OK))
			|| diag_error(d, "cannot write '%s': %s", path,
			              report ? strerror(errno)
			              : "not a regular file");
	return can_create(path, d);
}

bool
outputs_check(const struct outputs *o, const char *model,
              const struct onnx_file *file, Diag *d)
{
	const char *const path[] = { o->so, o->weights, o->json,
	                             o->svg, o->page };
	enum { N = sizeof path / sizeof *path };
	bool ok = true;

	for (int i = 0; i < N; i++) {
		if (!path[i])
			continue;
		if (!can_write(path[i], i >= 2, d))
			ok = false;
		else if (same_file(path[i], model)
		         || (file && onnx_reads(file, path[i])))
			ok = diag_error(d, "'%s' is an input and would be "
			                "overwritten; choose another output "
			                "name", path[i]);
		for (int k = 0; k < i; k++)
			if (path[k] && same_file(path[i], path[k]))
				ok = diag_error(d, "'%s' is the name of two "
				                "outputs", path[i]);
	}
	return ok;
}

bool
outputs_check_report(const char *path, const char *from, Diag *d)
{
	const struct outputs o = { .json = path };

	return outputs_check(&o, from, NULL, d);
}

bool
outputs_write_plan(const char *path, const Pass *p, const Plan *plan,
                   const struct report_source *of, Diag *d)
{
	struct outfile o;
	bool ok;

	if (!path)
		return true;
	if (!outfile_open(&o, path, d))
		return false;
	ok = (p && p->planned.pipeline ? pipeline_write_json(p, of, o.f)
	      : plan_write_json(p, plan, of, o.f))
		|| diag_internal(d, "the plan was not replayed");
	return outfile_close(&o, ok);
}
