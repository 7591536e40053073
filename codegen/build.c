/* Sources are written to a folder under TMPDIR, compiled there, and the result
 * is moved to its place; the folder is always removed.
 *
 * Kernels and the functions that they call are separate units, compiled in
 * parallel.  The functions are the same text for all models, and the kernels
 * of a model are the same under most budgets: their objects are kept.  No
 * command names the folder, so that ccache finds them again, too.
 */
#include "codegen/build.h"
#include "codegen/cc.h"
#include "codegen/object_cache.h"
#include "ir/base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- commands ---- */

static struct command
command_of(const struct codegen_options *opt, Arena *a)
{
	return cc_command(opt->machine->compiler, opt->compiler, opt->arch,
	                  opt->werror, a);
}

/* "-shared -o model.so" and the tables, behind the compiler's words. */
static struct command
link_command(const struct codegen_options *opt, Arena *a)
{
	struct command c = command_of(opt, a);

	cc_add(&c, "-shared");
	cc_add(&c, "-o");
	cc_add(&c, "model.so");
	cc_add(&c, "model.c");
	c.makes = "model.so";
	return c;
}

const char *
build_command_text(const struct sources *src, const struct codegen_options *opt)
{
	struct command c = link_command(opt, src->arena);

	for (size_t i = 0; i < src->n; i++)
		if (sources_is_unit(&src->v[i]))
			cc_add(&c, src->v[i].name);
	cc_add(&c, "-lm");
	return cc_text(&c, src->arena);
}

/* Large units first: nobody waits for one alone at the end. */
static int
by_source_size(const void *a, const void *b)
{
	const struct source_file *x = a, *y = b;

	return x->n != y->n ? x->n < y->n ? 1 : -1 : strcmp(x->name, y->name);
}

static bool
is_tables(const struct source_file *f)
{
	return !strcmp(f->name, "model.c");
}

/* The units other than the tables, large ones first. */
static struct source_file *
units_of(const struct sources *src, int *n)
{
	struct source_file *unit = arena_array(src->arena, src->n,
	                                       sizeof *unit);

	*n = 0;
	for (size_t i = 0; i < src->n; i++)
		if (sources_is_unit(&src->v[i]) && !is_tables(&src->v[i]))
			unit[(*n)++] = src->v[i];
	qsort(unit, (size_t)*n, sizeof *unit, by_source_size);
	return unit;
}

static struct command
unit_command(const struct codegen_options *opt, const char *unit,
             const char *object, Arena *a)
{
	struct command c = command_of(opt, a);

	c.makes = object;
	cc_add(&c, "-c");
	cc_add(&c, "-o");
	cc_add(&c, object);
	cc_add(&c, unit);
	return c;
}

/* Compile each unit to an object, unless its object was kept, and link these
 * to the tables: short work that no other compile could share. */
static bool
compile_units(const char *dir, const struct sources *src,
              const struct codegen_options *opt, Diag *d)
{
	Arena *a = src->arena;
	struct command link = link_command(opt, a), all = command_of(opt, a);
	struct object_cache cache = object_cache_open(src, &all, a);
	int nunit, n = 0;
	struct source_file *unit = units_of(src, &nunit);
	struct command *each = arena_array(a, (size_t)nunit, sizeof *each);
	const char **kept = arena_array(a, (size_t)nunit, sizeof *kept);

	for (int i = 0; i < nunit; i++) {
		const char *object = arena_printf(a, "%s.o", unit[i].name);

		cc_add(&link, object);
		kept[n] = object_cache_path(&cache, &unit[i]);
		if (object_cache_take(kept[n],
		                      arena_printf(a, "%s/%s", dir, object)))
			continue;
		each[n++] = unit_command(opt, unit[i].name, object, a);
	}
	if (!cc_run(dir, each, n, opt->stop, a, d))
		return false;
	for (int i = 0; i < n; i++)
		object_cache_put(kept[i], arena_printf(a, "%s/%s", dir,
		                                       each[i].makes));
	if (n)
		object_cache_trim(&cache);
	cc_add(&link, "-lm");
	return cc_run(dir, &link, 1, opt->stop, a, d);
}

/* ---- files ---- */

static bool
copy_file(const char *from, FILE *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	char buf[1 << 16];
	ssize_t n = -1;

	while (in >= 0 && (n = read(in, buf, sizeof buf)) > 0
	       && fwrite(buf, 1, (size_t)n, to) == (size_t)n)
		;
	if (in >= 0)
		close(in);
	return n == 0 && fflush(to) == 0 && fsync(fileno(to)) == 0;
}

/* Copy a file beside its final place; outfile_close moves it there. */
static bool
copy_beside(struct outfile *o, const char *from, const char *to, Diag *d)
{
	if (!outfile_open(o, to, d))
		return false;
	if (copy_file(from, o->f))
		return true;
	diag_error(d, "cannot write '%s': %s", to, strerror(errno));
	return outfile_close(o, false);
}

/* The library and its weights appear together, when nothing is left that
 * could fail but a rename. */
static bool
install_library(const char *from, const Graph *g,
                const struct codegen_options *opt, Diag *d)
{
	struct outfile o;
	bool ok;

	if (!copy_beside(&o, from, opt->out_so, d))
		return false;
	outfile_executable(&o);
	ok = !opt->weights || codegen_weights(g, &opt->origin,
	                                       opt->weights, d);
	return outfile_close(&o, ok) && ok;
}

/* The folder of this compilation, the compiler's own leavings included. */
static void
remove_dir(const char *dir, Arena *a)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlink(arena_printf(a, "%s/%s", dir, e->d_name));
	if (d)
		closedir(d);
	rmdir(dir);
}

bool
build_library(const struct sources *src, const Graph *g,
              const struct codegen_options *opt, Diag *d)
{
	Arena *a = src->arena;
	char *dir = outfile_folder(a, d);
	bool ok;

	if (!dir)
		return false;
	ok = sources_write(src, dir, d) && compile_units(dir, src, opt, d)
		&& (!opt->emit_dir || sources_write(src, opt->emit_dir, d))
		&& install_library(arena_printf(a, "%s/model.so", dir), g, opt,
		                   d);
	remove_dir(dir, a);
	return ok;
}
