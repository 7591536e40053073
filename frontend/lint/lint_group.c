/* Groups of findings: their number, the name of the first, a line about each.
 */
#include "frontend/lint/lint_context.h"

#include <stdarg.h>
#include <string.h>

enum { NAMES_SHOWN = 50, OPTIONS_SHOWN = 8, MOST_LINE = 400 };

void
add_warning(struct lint_context *s, const struct lint_group *g, const char *fmt,
            ...)
{
	struct lint_report *d = &s->found;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
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

const char *
group_subject(struct lint_context *s, const struct lint_group *g)
{
	return g->n == 1 ? arena_printf(s->arena, "'%s'", g->first)
	       : arena_printf(s->arena, "'%s' and %d more", g->first, g->n - 1);
}

const char *
group_options(struct lint_context *s, const struct lint_group *g)
{
	const char *text = g->line[0];

	for (int i = 1; i < g->nline && i < OPTIONS_SHOWN
	     && strlen(text) < MOST_LINE; i++)
		text = arena_printf(s->arena, "%s %s", text, g->line[i]);
	return text;
}
