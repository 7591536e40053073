/* Sources in memory, and written to folders. */
#include "codegen/sources.h"
#include "codegen/rules/texts.h"
#include "ir/base/outfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void
sources_add(struct sources *s, const char *name, const void *data, size_t n)
{
	s->v = arena_grow(s->arena, s->v, s->n, &s->cap, s->n + 1,
	                  sizeof *s->v);
	s->v[s->n++] = (struct source_file){ name, data, n };
}

static bool
ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n >= k && !strcmp(name + n - k, end);
}

bool
sources_is_unit(const struct source_file *f)
{
	return ends_with(f->name, ".c") || ends_with(f->name, ".cu");
}

static const struct text *
text_named(const char *name)
{
	for (const struct text *t = codegen_texts; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

static void
add_named_text(struct sources *s, const char *name)
{
	const struct text *t = text_named(name);

	for (size_t i = 0; t && i < s->n; i++)
		if (s->v[i].data == t->text)
			return;
	if (!t)
		return;
	sources_add(s, t->name, t->text, strlen(t->text));
	sources_include(s, t->text);
	if (ends_with(name, ".h"))
		add_named_text(s, arena_printf(s->arena, "%.*sc",
		                               (int)strlen(name) - 1, name));
}

void
sources_include(struct sources *s, const char *text)
{
	static const char mark[] = "\n#include \"";
	const char *at = text, *end;

	while ((at = strstr(at, mark))) {
		at += sizeof mark - 1;
		end = strchr(at, '"');
		add_named_text(s, arena_printf(s->arena, "%.*s",
		                               (int)(end - at), at));
		at = end;
	}
}

bool
sources_write(const struct sources *s, const char *dir, Diag *d)
{
	if (mkdir(dir, 0777) && errno != EEXIST)
		return diag_error(d, "cannot create '%s': %s", dir,
		                  strerror(errno));
	for (size_t i = 0; i < s->n; i++) {
		const struct source_file *f = &s->v[i];
		const char *path = arena_printf(s->arena, "%s/%s", dir,
		                                f->name);
		struct outfile o;
		bool ok;

		if (!outfile_open(&o, path, d))
			return false;
		ok = fwrite(f->data, 1, f->n, o.f) == f->n
			&& fflush(o.f) == 0;
		if (!ok)
			diag_error(d, "cannot write '%s': %s", path,
			           strerror(errno));
		if (!outfile_close(&o, ok))
			return false;
	}
	return true;
}
