/* Groups of findings: their number, the name of the first, a line about each;
 * and the warnings that are made of them. */
#include "frontend/lint/lint_context.h"

#include <stdarg.h>
#include <string.h>

enum { NAMES_SHOWN = 50, OPTIONS_SHOWN = 8, MOST_LINE = 400 };

/* ---- warnings ---- */

/* "'a'" or "'a' and 3 more". */
static const char *
group_subject(struct lint_context *s, const struct lint_group *g)
{
	return g->n == 1 ? arena_printf(s->arena, "'%s'", g->first)
	       : arena_printf(s->arena, "'%s' and %d more", g->first, g->n - 1);
}

/* The first few lines joined into one line of options. */
static const char *
group_options(struct lint_context *s, const struct lint_group *g)
{
	const char *text = g->line[0];

	for (int i = 1; i < g->nline && i < OPTIONS_SHOWN
	     && strlen(text) < MOST_LINE; i++)
		text = arena_printf(s->arena, "%s %s", text, g->line[i]);
	return text;
}

static const char *
double_percents(struct lint_context *s, const char *text)
{
	char *to = arena_alloc(s->arena, 2 * strlen(text) + 1), *doubled = to;

	for (; *text; text++) {
		if (*text == '%')
			*to++ = '%';
		*to++ = *text;
	}
	return doubled;
}

/* What stands for the key of a format, which a brace ends. */
static const char *
expand_key(struct lint_context *s, const struct lint_group *g, const char *key)
{
	size_t n = strcspn(key, "}"), one = strcspn(key, "|");

	if (one < n)
		return g->n == 1 ? arena_printf(s->arena, "%.*s", (int)one, key)
		       : arena_printf(s->arena, "%.*s", (int)(n - one - 1),
		                      key + one + 1);
	if (n == 1)
		return arena_printf(s->arena, "%d", g->n);
	return double_percents(s, *key == 's' ? group_subject(s, g)
	                       : *key == 'o' ? group_options(s, g)
	                       : arena_printf(s->arena, "'%s'", g->first));
}

static const char *
expand_format(struct lint_context *s, const struct lint_group *g,
              const char *fmt)
{
	const char *text = "";

	for (;;) {
		size_t n = strcspn(fmt, "{");

		text = arena_printf(s->arena, "%s%.*s%s", text, (int)n, fmt,
		                    fmt[n] ? expand_key(s, g, fmt + n + 1)
		                    : "");
		if (!fmt[n])
			return text;
		fmt += n + strcspn(fmt + n, "}") + 1;
	}
}

void
add_warning(struct lint_context *s, const struct lint_group *g, const char *fmt,
            ...)
{
	struct lint_report *d = &s->found;
	char text[1024];
	va_list ap;

	if (g && !g->n)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, g ? expand_format(s, g, fmt) : fmt, ap);
	va_end(ap);
	d->at = arena_grow(s->arena, d->at, (size_t)d->n, &d->cap,
	                   (size_t)d->n + 1, sizeof *d->at);
	d->at[d->n] = (struct lint_warning){
		.text = arena_str(s->arena, text),
	};
	if (g && g->n > 1) {
		d->at[d->n].detail = g->line;
		d->at[d->n].ndetail = g->nline;
	}
	d->n++;
}

/* ---- groups ---- */

void
group_add(struct lint_context *s, struct lint_group *g, const char *name,
          const char *line)
{
	if (g->n++ == 0)
		g->first = name;
	if (g->nline > NAMES_SHOWN)
		return;
	g->line = arena_grow(s->arena, g->line, (size_t)g->nline, &g->cap,
	                     (size_t)g->nline + 1, sizeof *g->line);
	g->line[g->nline] = g->nline < NAMES_SHOWN ? line : "...";
	g->nline++;
}

void
group_add_name(struct lint_context *s, struct lint_group *g, const char *name)
{
	group_add(s, g, name, arena_printf(s->arena, "'%s'", name));
}

struct lint_group
group_nodes(struct lint_context *s, NodeTest *test)
{
	struct lint_group g = { .n = 0 };

	FOR_FLAT_NODES (n, s->f)
		if (n->needed && test(s, n)) {
			g.node = g.n ? g.node : n;
			group_add_name(s, &g, n->name);
		}
	return g;
}

struct lint_group
group_weights(struct lint_context *s, WeightTest *test, bool freeze)
{
	struct lint_group g = { .n = 0 };

	FOR_FLAT_VALS (v, s->f)
		if (v->init && v->nuse && test(s, v))
			group_add(s, &g, v->name, arena_printf(s->arena,
				"%s'%s'", freeze ? "--freeze " : "", v->name));
	return g;
}
