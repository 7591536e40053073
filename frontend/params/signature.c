#include "frontend/params/signature.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/support/glob.h"

enum { ALIASES = 64 };                  /* most missing biases to look up */

static int
by_signature_name(const void *a, const void *b)
{
	const struct signature_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Parses lines "p_x: PARAMETER target='x'" with an optional tail. */
static void
parse_signature(struct flat *f, struct signature *c, const char *text)
{
	Arena *a = f->arena;
	char *s = arena_str(a, text), *line;
	size_t cap = 0;

	while ((line = strsep(&s, "\n"))) {
		char *kind = strstr(line, ": "), *name, *end;

		name = kind ? strstr(kind, " target='") : NULL;
		end = name ? strchr(name + 9, '\'') : NULL;
		if (!end)
			continue;
		*end = 0;
		kind += 2;
		if (strncmp(kind, "BUFFER_MUTATION ", 16) == 0) {
			f->mutated = arena_grow(a, f->mutated,
			                        (size_t)f->nmutated,
			                        &f->mutated_cap,
			                        (size_t)f->nmutated + 1,
			                        sizeof *f->mutated);
			f->mutated[f->nmutated++] = name + 9;
		}
		if (strncmp(kind, "PARAMETER ", 10) != 0
		    && strncmp(kind, "BUFFER ", 7) != 0
		    && strncmp(kind, "CONSTANT_TENSOR ", 16) != 0)
			continue;
		c->entry = arena_grow(a, c->entry, c->n, &cap, c->n + 1,
		                      sizeof *c->entry);
		c->entry[c->n++] = (struct signature_entry){
			name + 9, *kind, false, false
		};
	}
	if (c->n)
		qsort(c->entry, c->n, sizeof *c->entry, by_signature_name);
}

/* Whether a missing bias has an alias: heads of language models tie a.bias to
 * a.decoder.bias.  Other parameters are rarely tied so; nested modules often
 * have factors of one name, of which an exporter drops one. */
static bool
is_alias(const struct flat *f, const char *lost)
{
	const char *last = strrchr(lost, '.');

	for (int i = 1; last && strcmp(last, ".bias") == 0 && i < f->nval;
	     i++) {
		const char *name = f->val[i].name, *end = strrchr(name, '.');

		if (f->val[i].init && end && strcmp(end, last) == 0
		    && strncmp(name, lost, (size_t)(last - lost + 1)) == 0)
			return true;
	}
	return false;
}

static void
find_signature(struct flat *f, struct signature *c,
               Onnx__StringStringEntryProto **at, size_t n)
{
	static const char key[] =
		"pkg.torch.export.ExportedProgram.graph_signature";

	for (size_t i = 0; i < n && !c->n; i++)
		if (at[i]->key && at[i]->value && strcmp(at[i]->key, key) == 0)
			parse_signature(f, c, at[i]->value);
}

static void
mark_frozen(struct flat *f, struct signature *c)
{
	const Onnx__ModelProto *m = f->file->model;

	for (size_t i = 0; i < m->n_metadata_props; i++) {
		const Onnx__StringStringEntryProto *p = m->metadata_props[i];
		char *text, *name;

		if (!p->key || !p->value || strcmp(p->key, "ckc.frozen") != 0)
			continue;
		c->noted = true;
		text = arena_str(f->arena, p->value);
		while ((name = strsep(&text, "\n"))) {
			struct signature_entry *s = signature_find(c, name);

			if (s)
				s->frozen = true;
		}
	}
}

struct signature_entry *
signature_find(const struct signature *c, const char *name)
{
	struct signature_entry want = { .name = name };

	return c->n == 0 ? NULL
	       : bsearch(&want, c->entry, c->n, sizeof *c->entry,
	                 by_signature_name);
}

const struct signature *
signature_read(struct flat *f)
{
	struct signature *c = arena_alloc(f->arena, sizeof *c);
	const Onnx__ModelProto *m = f->file->model;
	const Onnx__GraphProto *g = m->graph;
	size_t found = 0, params = 0;
	int named = 0, nalias = 0;

	f->signature = c;
	find_signature(f, c, g->metadata_props, g->n_metadata_props);
	find_signature(f, c, m->metadata_props, m->n_metadata_props);
	mark_frozen(f, c);
	for (int i = 1; i < f->nval; i++) {
		struct signature_entry *s = f->val[i].init
			? signature_find(c, f->val[i].name) : NULL;

		found += s && s->kind == 'P';
		if (s)
			s->there = true;
	}
	for (size_t i = 0; i < c->n && named < FLAT_LOST; i++) {
		if (c->entry[i].kind != 'P' || c->entry[i].there)
			continue;
		if (nalias < ALIASES && is_alias(f, c->entry[i].name))
			nalias++;
		else
			f->lost[named++] = c->entry[i].name;
	}
	for (size_t i = 0; i < c->n; i++) {
		const struct signature_entry *s = &c->entry[i];

		params += s->kind == 'P';
		f->nlostnorm += s->kind == 'B' && !s->there
			&& glob_match("*.running_mean", s->name);
		f->nlostweight += s->kind == 'P' && !s->there
			&& glob_match("*.weight", s->name);
	}
	params = found > params ? found : params;
	c->lost = found < params;
	f->nlost = (int)(params - found) - nalias;
	return c;
}

/* The note is a Python list of names: ['val_0', 'w']. */
const char *
signature_source(const struct flat *f, const struct flat_val *v, bool *noted)
{
	const struct signature *c = f->signature;
	const char *list = c->n ? flat_folded_from(f, v->name) : NULL;
	char *text = list ? arena_str(f->arena, list) : NULL, *name;

	*noted = list;
	while (text && strsep(&text, "'") && (name = strsep(&text, "'"))) {
		const struct signature_entry *s = signature_find(c, name);

		if (s && s->kind == 'P')
			return name;
	}
	return NULL;
}

/* Whether s is the prefix and "_12", as exporters number values.  The first
 * value named after an ATen op has no number. */
static bool
is_numbered(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (strncmp(s, prefix, n) != 0)
		return false;
	s += n;
	if (!*s)
		return *prefix == '_';
	return *s == '_' && s[1] && !s[1 + strspn(s + 1, "0123456789")];
}

bool
flat_is_made_up(const char *s)
{
	static const char *const prefixes[] = {
		"val", "lifted_tensor", "_to_copy", "_unsafe_view",
		"_unsafe_index", "_softmax", "_log_softmax", "_conj",
		"_reshape_alias", "_weight_norm_interface"
	};

	if (*s == '/' || strncmp(s, "onnx::", 6) == 0
	    || !s[strspn(s, "0123456789")])
		return true;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (is_numbered(s, prefixes[i]))
			return true;
	return false;
}

bool
flat_is_path(const char *s)
{
	return strchr(s, '.') && !flat_is_made_up(s);
}
