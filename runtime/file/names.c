/* Mapping of tensor names with another prefix.
 *
 * Checkpoints of a model and of a model that contains it differ in a prefix of
 * all names: "model.", "module.", "bert.".  The mapping is guessed from the
 * first names that are looked for, and from every name of the file that ends
 * like one; the best guess is reported, not applied.
 */
#include "runtime/file/names.h"
#include "runtime/file/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
names_is_state(const struct array_file *f, const char *name)
{
	const char *optimizer = array_meta(f, "optimizer");
	size_t n = optimizer ? strlen(optimizer) : 0;

	return n && !strncmp(name, optimizer, n) && name[n] == '.';
}

/* ---- mapping ---- */

char *
names_joined(const char *from, size_t n, const char *rest)
{
	char *s = malloc(n + strlen(rest) + 1);

	if (!s)
		return NULL;
	memcpy(s, from, n);
	memcpy(s + n, rest, strlen(rest) + 1);
	return s;
}

/* The last mapping that fits the name; nmap: none. */
static size_t
find_mapping(const char *name, const char *const *map, size_t nmap)
{
	for (size_t k = nmap; k-- > 0;)
		if (!strncmp(name, map[k], strcspn(map[k], "=")))
			return k;
	return nmap;
}

static ckr_status
check_map_used(const struct array_file *f, const char *map, struct err *e)
{
	char old[NAME_TEXT], name[NAME_TEXT], have[NAME_TEXT];
	size_t n = strcspn(map, "=");

	for (size_t i = 0; i < f->n; i++)
		if (!strncmp(f->v[i].name, map, n))
			return CKR_OK;
	snprintf(old, sizeof(old), "%.*s", (int)n, map);
	return err_set(e, CKR_EARG, "%s: no tensor name begins with '%s'; the "
	               "first of %zu names is '%s'", f->path,
	               err_name(name, sizeof(name), old), f->n,
	               err_name(have, sizeof(have),
	                        f->n ? f->v[0].name : ""));
}

ckr_status
names_map(struct array_file *f, const char *const *map, size_t nmap,
          struct err *e)
{
	if (!nmap)
		return CKR_OK;
	for (size_t k = 0; k < nmap; k++)
		CKR_TRY(check_map_used(f, map[k], e));
	if (!f->renamed)
		f->renamed = calloc(f->n + 1, sizeof(*f->renamed));
	if (!f->renamed)
		return err_no_memory(e);
	for (size_t i = 0; i < f->n; i++) {
		const char *name = f->v[i].name;
		size_t k = names_is_state(f, name) ? nmap
		           : find_mapping(name, map, nmap);
		size_t old = k < nmap ? strcspn(map[k], "=") : 0;
		char *new;

		if (k == nmap)
			continue;
		new = names_joined(map[k] + old + 1,
		                   strlen(map[k] + old + 1), name + old);
		if (!new)
			return err_no_memory(e);
		free(f->renamed[i]);
		f->renamed[i] = new;
		f->v[i].name = new;
	}
	free(f->index);
	f->index = NULL;
	return array_index(f, e);
}

/* ---- averages ---- */

/* The parameter that the array is the average of; NULL: it is none. */
static const char *
averaged_name(const struct array_file *f, const char *name)
{
	static const char state[] = "ema.";

	if (!names_is_state(f, name))
		return NULL;
	name += strlen(array_meta(f, "optimizer")) + 1;
	return strncmp(name, state, strlen(state)) ? NULL
	       : name + strlen(state);
}

ckr_status
names_use_averages(struct array_file *f, size_t *n, struct err *e)
{
	/* all are found before names, which the index sorts, change */
	const struct array **param = calloc(f->n + 1, sizeof(const void *));

	*n = 0;
	if (!param)
		return err_no_memory(e);
	for (size_t i = 0; i < f->n; i++) {
		const char *of = averaged_name(f, f->v[i].name);

		param[i] = of ? array_find(f, of) : NULL;
	}
	for (size_t i = 0; i < f->n; i++) {
		const char *of = f->v[i].name;

		if (!param[i])
			continue;
		f->v[i].name = param[i]->name;
		f->v[param[i] - f->v].name = of;
		++*n;
	}
	free(param);
	free(f->index);
	f->index = NULL;
	return array_index(f, e);
}

/* ---- guessing ---- */

/* "OLD=NEW" by lengths: what a name of the file begins with, and what it is to
 * begin with; and what is found by it. */
struct guess {
	const char *have, *want;
	size_t old, new;
	size_t found, same_shape;       /* of all wanted; of their shape too */
	size_t renamed;                 /* found under another name */
};

/* By the longest end that both names share, from a dot on or all of one. */
static bool
match_suffix(const char *have, const char *want, struct guess *g)
{
	size_t a = strlen(have), b = strlen(want);
	bool any = false;

	for (size_t n = 0; n <= a && n <= b; n++) {
		if (n && have[a - n] != want[b - n])
			break;
		if (n && (n == a || have[a - n - 1] == '.')
		    && (n == b || want[b - n - 1] == '.')) {
			*g = (struct guess){ have, want, a - n, b - n, 0, 0,
			                    0 };
			any = true;
		}
	}
	return any;
}

static bool
same_guess(const struct guess *a, const struct guess *b)
{
	return a->old == b->old && a->new == b->new
	       && !memcmp(a->have, b->have, a->old)
	       && !memcmp(a->want, b->want, a->new);
}

/* What is wanted, if names are mapped so; NULL: it is not there. */
static const struct array *
find_mapped(const struct array_file *f, const struct guess *g,
            const struct wanted *w)
{
	bool maps = !strncmp(w->name, g->want, g->new);
	bool moves = !strncmp(w->name, g->have, g->old);
	char *name = !maps ? NULL
		: names_joined(g->have, g->old, w->name + g->new);
	const struct array *a = name ? array_find(f, name)
		: moves ? NULL : array_find(f, w->name);

	free(name);
	return a;
}

static bool
has_shape(const struct array *a, const struct wanted *w)
{
	return a->rank == w->rank
	       && (!memcmp(a->dim, w->dim, (size_t)a->rank * sizeof(*a->dim))
	           || (w->stored && a->dtype == CKR_U8
	               && a->dim[a->rank - 1] == w->stored));
}

static void
try_guess(const struct array_file *f, struct guess *g, const struct wanted *w,
          size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct array *a = find_mapped(f, g, &w[i]);

		g->found += a != NULL;
		g->same_shape += a && has_shape(a, &w[i]);
		g->renamed += a && strcmp(a->name, w[i].name);
	}
}

enum { GUESSES = 3, TRIED = 16 };

/* Guesses by which a name of the file is this one, the best ones: by which all
 * is there, or, more than without one, most. */
static size_t
find_guesses(const struct array_file *f, const char *name,
             const struct wanted *w, size_t n, struct guess best[GUESSES])
{
	struct guess tried[TRIED], g;
	size_t count = 0, ntried = 0, least = n / 2 + 1;

	for (size_t i = 0, k = 0; i < n; i++) {
		k += array_find(f, w[i].name) != NULL;
		least = k >= least ? k + 1 : least;
	}
	for (size_t i = 0; i < f->n && ntried < TRIED; i++) {
		bool known = false;

		if (!match_suffix(f->v[i].name, name, &g) || !(g.old + g.new))
			continue;
		for (size_t k = 0; k < ntried; k++)
			known |= same_guess(&tried[k], &g);
		if (known)
			continue;
		tried[ntried++] = g;
		try_guess(f, &g, w, n);
		if (g.found < least)
			continue;
		count = g.found > least || !count ? 0 : count;
		least = g.found;
		if (count < GUESSES)
			best[count++] = g;
	}
	return count;
}

static void
append_option(char *text, size_t size, const char *option, const char *value)
{
	char name[2 * NAME_TEXT];

	err_append(text, size, "--init-%s '%s'", option,
	           err_name(name, sizeof(name), value));
}

static void
append_map(char *text, size_t size, const struct guess *g)
{
	char map[2 * NAME_TEXT];

	snprintf(map, sizeof(map), "%.*s=%.*s", (int)g->old, g->have,
	         (int)g->new, g->want);
	append_option(text, size, "map", map);
}

/* What is there by the guess, but in another shape. */
static void
append_skips(char *text, size_t size, const struct array_file *f,
             const struct guess *g, const struct wanted *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct array *a = find_mapped(f, g, &w[i]);

		if (!a || has_shape(a, &w[i]))
			continue;
		err_append(text, size, " ");
		append_option(text, size, "skip", w[i].name);
	}
}

const char *
names_guess(const struct array_file *f, const struct wanted *w, size_t n,
            char *text, size_t size)
{
	struct guess g[GUESSES];
	size_t count = 0;

	*text = '\0';
	for (size_t i = 0; i < n && i < TRIED && !count; i++)
		count = find_guesses(f, w[i].name, w, n, g);
	if (!count)
		return text;
	err_append(text, size, "the file has %zu of %zu tensors under other "
	           "names", g->renamed, n);
	if (g->same_shape < g->found)
		err_append(text, size, ", %zu with another shape",
		           g->found - g->same_shape);
	for (size_t k = 0; k < count; k++) {
		err_append(text, size, k ? " or " : "; try: ");
		append_map(text, size, &g[k]);
	}
	if (count == 1)
		append_skips(text, size, f, g, w, n);
	if (g->found < n)
		err_append(text, size, " --init-partial");
	return text;
}
