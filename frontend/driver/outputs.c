#include "frontend/driver/outputs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/base/outfile.h"

static const char *
after_slash(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The text without the given ending, or without any ".xyz" if it is NULL. */
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
			after_slash(model), NULL, a));
	o.weights = arena_printf(a, "%s.safetensors",
	                         without_suffix(o.so, ".so", a));
	return o;
}

static const char *
folder_of(const char *path, Arena *a)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return ".";
	return slash == path ? "/"
		: arena_printf(a, "%.*s", (int)(slash - path), path);
}

/* Whether both names lead to one file, be it there yet or not. */
static bool
same_file(const char *p, const char *q, Arena *a)
{
	struct stat s, t;

	if (outfile_is_stdout(p) || outfile_is_stdout(q))
		return strcmp(p, q) == 0;
	if (!stat(p, &s) && !stat(q, &t))
		return s.st_dev == t.st_dev && s.st_ino == t.st_ino;
	return !stat(folder_of(p, a), &s) && !stat(folder_of(q, a), &t)
		&& s.st_dev == t.st_dev && s.st_ino == t.st_ino
		&& !strcmp(after_slash(p), after_slash(q));
}

/* Reports may go to a device or a pipe, a library and its weights may not. */
static bool
can_write(const char *path, bool report, Arena *a, Diag *d)
{
	const char *dir = folder_of(path, a);
	struct stat st;
	bool there = !stat(path, &st);

	if (outfile_is_stdout(path))
		return report || diag_error(d, "cannot write '-': a library "
		                            "does not go to standard output");
	if (there && S_ISDIR(st.st_mode))
		return diag_error(d, "cannot write '%s': it is a folder", path);
	if (there && !S_ISREG(st.st_mode))
		return (report && !access(path, W_OK))
			|| diag_error(d, "cannot write '%s': %s", path,
			              report ? strerror(errno)
			              : "not a regular file");
	if (access(dir, W_OK | X_OK))
		return diag_error(d, "cannot write '%s': folder '%s': %s",
		                  path, dir, strerror(errno));
	return true;
}

bool
outputs_check(const struct outputs *o, const char *model,
              const struct onnx_file *file, Arena *a, Diag *d)
{
	const char *const path[] = { o->so, o->weights, o->json,
	                             o->svg };
	enum { N = sizeof path / sizeof *path };
	bool ok = true;

	for (int i = 0; i < N; i++) {
		if (!path[i])
			continue;
		if (!can_write(path[i], i >= 2, a, d))
			ok = false;
		else if (same_file(path[i], model, a)
		         || (file && onnx_reads(file, path[i])))
			ok = diag_error(d, "'%s' is read here and would "
			                "be overwritten; choose another output "
			                "name", path[i]);
		for (int k = 0; k < i; k++)
			if (path[k] && same_file(path[i], path[k], a))
				ok = diag_error(d, "'%s' is the name of two "
				                "outputs", path[i]);
	}
	return ok;
}

bool
outputs_check_report(const char *path, const char *from, Arena *a, Diag *d)
{
	const struct outputs o = { .json = path };

	return outputs_check(&o, from, NULL, a, d);
}
