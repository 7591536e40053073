/* Names with another beginning.
 *
 * Checkpoints of a model and of a model that holds it differ in what all names
 * begin with: "model.", "module.", "bert.".  Which mapping is meant is guessed
 * from the first name that is looked for, and from every name of the file that
 * ends like it; a guess is good if by it everything is found, and is told, not
 * followed.
 */
#include "runtime/file/names.h"

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
mapping_of(const char *name, const char *const *map, size_t nmap)
{
	for (size_t k = nmap; k-- > 0;)
		if (!strncmp(name, map[k], strcspn(map[k], "=")))
			return k;
	return nmap;
}

static ckr_status
need_used(const struct array_file *f, const char *map, struct err *e)
{
	char old[NAME_TEXT], name[NAME_TEXT], have[NAME_TEXT];
	size_t n = strcspn(map, "=");

	for (size_t i = 0; i < f->n; i++)
		if (!strncmp(f->v[i].name, map, n))
			return CKR_OK;
	snprintf(old, sizeof(old), "%.*s", (int)n, map);
	return err_set(e, CKR_EARG, "%s: no tensor begins with '%s'; the "
	               "first of %zu is '%s'", f->path,
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
		CKR_TRY(need_used(f, map[k], e));
	f->renamed = calloc(f->n + 1, sizeof(*f->renamed));
	if (!f->renamed)
		return err_set(e, CKR_ENOMEM, "out of memory");
	for (size_t i = 0; i < f->n; i++) {
		const char *name = f->v[i].name;
		size_t k = names_is_state(f, name) ? nmap
		           : mapping_of(name, map, nmap);
		size_t old = k < nmap ? strcspn(map[k], "=") : 0;

		if (k == nmap)
			continue;
		f->renamed[i] = names_joined(map[k] + old + 1,
		                       strlen(map[k] + old + 1), name + old);
		if (!f->renamed[i])
			return err_set(e, CKR_ENOMEM, "out of memory");
		f->v[i].name = f->renamed[i];
	}
	free(f->index);
	f->index = NULL;
	return array_index(f, e);
}

/* ---- guessing ---- */

/* "OLD=NEW" by lengths: what a name of the file begins with, and what it is to
 * begin with. */
struct guess {
	const char *have, *want;
	size_t old, new;
};

/* By the longest end that both names share, from a dot on or all of one. */
static bool
guess_by(const char *have, const char *want, struct guess *g)
{
	size_t a = strlen(have), b = strlen(want);
	bool any = false;

	for (size_t n = 0; n <= a && n <= b; n++) {
		if (n && have[a - n] != want[b - n])
			break;
		if (n && (n == a || have[a - n - 1] == '.')
		    && (n == b || want[b - n - 1] == '.')) {
			*g = (struct guess){ have, want, a - n, b - n };
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

/* Whether all that is wanted is there by it. */
static bool
finds_all(const struct array_file *f, const struct guess *g,
          const struct wanted *w, size_t n)
{
	bool all = true;

	for (size_t i = 0; i < n && all; i++) {
		bool maps = !strncmp(w[i].name, g->want, g->new);
		char *name = !maps ? NULL
			: names_joined(g->have, g->old, w[i].name + g->new);
		bool moves = !strncmp(w[i].name, g->have, g->old);
		const struct array *a = name ? array_find(f, name)
			: moves ? NULL : array_find(f, w[i].name);

		all = a && a->rank == w[i].rank
		      && !memcmp(a->dim, w[i].dim,
		                 (size_t)a->rank * sizeof(*a->dim));
		free(name);
	}
	return all;
}

static size_t
add_line(char *text, size_t size, size_t at, const struct guess *g)
{
	char old[NAME_TEXT], new[NAME_TEXT], o[NAME_TEXT], n[NAME_TEXT];

	snprintf(old, sizeof(old), "%.*s", (int)g->old, g->have);
	snprintf(new, sizeof(new), "%.*s", (int)g->new, g->want);
	return at + (size_t)snprintf(text + at, size - at,
	                             "%s--init-map '%s=%s'", at ? " or " : "",
	                             err_name(o, sizeof(o), old),
	                             err_name(n, sizeof(n), new));
}

enum { GUESSES = 3 };

const char *
names_guess(const struct array_file *f, const struct wanted *w, size_t n,
            char *text, size_t size)
{
	struct guess found[GUESSES], g;
	size_t count = 0, at = 0;

	*text = '\0';
	if (f->renamed)         /* names are not the file's any more */
		return text;
	for (size_t i = 0; i < f->n && n && count < GUESSES; i++) {
		bool known = false;

		if (!guess_by(f->v[i].name, w[0].name, &g) || !(g.old + g.new))
			continue;
		for (size_t k = 0; k < count; k++)
			known |= same_guess(&found[k], &g);
		if (!known && finds_all(f, &g, w, n))
			found[count++] = g;
	}
	for (size_t k = 0; k < count && at + 1 < size; k++)
		at = add_line(text, size, at, &found[k]);
	return text;
}
